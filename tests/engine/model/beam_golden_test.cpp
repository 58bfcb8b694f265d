// Beam search on golden models: the ids and scores of a search that computes every text from its
// beginning, with blocks to spare and with so few that searches are preempted.
#include <cmath>
#include <map>
#include <memory>

#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_beam.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kMaxNew = 12;
constexpr uint32_t kBlocks = 64;

class BeamGoldenTest : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_ASSIGN(golden_, read_golden_model(GetParam()));
    ASSERT_ASSIGN(file_, ModelFile::open(golden_.folder));
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = golden_.context}));
    StepRunnerOptions options{
        .limits = {.rows = 128, .sequences = 16, .logit_rows = 16, .context = golden_.context},
        .slots = 16,
        .kv_blocks = kBlocks};
    ASSERT_ASSIGN(runner_, StepRunner::create(device(), pipelines(), *model_, options));
  }

  std::unique_ptr<Engine> engine(uint32_t pool_blocks) {
    return std::make_unique<Engine>(*runner_, nullptr,
                                    EngineOptions{.limits = {.max_sequences = 16,
                                                             .max_step_tokens = 128,
                                                             .context = golden_.context,
                                                             .pool_blocks = pool_blocks,
                                                             .max_proposed = 0},
                                                  .vocabulary = golden_.vocab,
                                                  .check_integrity = true});
  }

  // The log-probabilities after these tokens, all of them computed at once.
  std::vector<std::pair<uint32_t, double>> logprobs(const std::vector<uint32_t>& tokens) {
    auto [place, is_new] = computed_.try_emplace(tokens);
    if (!is_new) return place->second;
    StepBatch batch;
    std::vector<uint32_t> table;
    for (uint32_t i = 0; i <= tokens.size() / kTokensPerBlock; ++i) table.push_back(i);
    batch.add_sequence(0, tokens, table);
    batch.sample(static_cast<uint32_t>(tokens.size()) - 1, {});
    const auto ticket = runner_->submit(batch);
    EXPECT_TRUE(ticket.ok() && runner_->wait(*ticket).ok());
    const auto logits = runner_->read_logits(1);
    EXPECT_TRUE(logits.ok());
    double sum = 0;
    for (const float logit : *logits) sum += std::exp(static_cast<double>(logit));
    for (uint32_t token = 0; token < golden_.vocab; ++token)
      place->second.emplace_back(token, (*logits)[token] - std::log(sum));
    return place->second;
  }

  // Returns how often searches were preempted.
  uint64_t expect_found(uint32_t pool_blocks) {
    const std::vector<GenerationRequest> requests = this->requests();
    std::unique_ptr<Engine> engine = this->engine(pool_blocks);
    std::vector<std::vector<TokenStream>> streams;
    for (const GenerationRequest& request : requests) {
      auto submitted = engine->submit_n(request, request.beam.beams);
      EXPECT_TRUE(submitted.ok());
      streams.push_back(std::move(submitted).value());
    }
    struct Found {
      std::vector<uint32_t> tokens;
      float score = 0;
    };
    std::vector<std::vector<Found>> found(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      for (TokenStream& stream : streams[i]) {
        Found& text = found[i].emplace_back();
        while (const auto token = stream.next()) text.tokens.push_back(token->id);
        EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
        text.score = stream.end().score.value_or(0);
      }
    const uint64_t preemptions = engine->metrics().preemptions_recompute.value();
    engine.reset();  // the runner is free from now on
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<ReferenceText> expected =
          ReferenceBeamSearch{requests[i].beam, kMaxNew, 0}.run(
              requests[i].prompt, [&](const auto& tokens) { return logprobs(tokens); },
              [](const auto&) { return false; });
      EXPECT_EQ(found[i].size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[i][k].tokens, expected[k].tokens) << "search " << i << ", text " << k;
        EXPECT_NEAR(found[i][k].score, expected[k].score, 1e-4);
      }
    }
    return preemptions;
  }

  std::vector<GenerationRequest> requests() const {
    std::vector<GenerationRequest> requests;
    for (size_t i = 1; i < golden_.prompts.size() - 1; ++i) {
      GenerationRequest& request = requests.emplace_back();
      request.prompt = golden_.prompts[i];
      request.max_tokens = kMaxNew;
      request.beam = {.beams = i == 2 ? 3u : 4u, .length_penalty = static_cast<float>(i) * 0.5f};
    }
    return requests;
  }

  GoldenModel golden_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
  std::map<std::vector<uint32_t>, std::vector<std::pair<uint32_t, double>>> computed_;
};

TEST_P(BeamGoldenTest, FindsTheTextsAndScoresOfFullRecomputation) {
  EXPECT_EQ(expect_found(kBlocks), 0u);
  EXPECT_GT(expect_found(13), 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, BeamGoldenTest, ::testing::Values("llama", "gemma3"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace hearth::testing
