// Guidance with a negative prompt on a device: the tokens are those of the formula, computed on the
// host from the logits of two plain forward passes per token.
#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kGuidedTokens = 20;

class GuidanceTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_ASSIGN(golden_, read_golden_model("llama"));
    ASSERT_ASSIGN(file_, ModelFile::open(golden_.folder));
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = golden_.context}));
    ASSERT_ASSIGN(
        runner_,
        StepRunner::create(device(), pipelines(), *model_,
                           {.limits = {.rows = 96, .sequences = 8, .logit_rows = 8, .context = 128},
                            .slots = 8,
                            .kv_blocks = 60}));
  }

  std::unique_ptr<Engine> engine(uint32_t pool_blocks) {
    return std::make_unique<Engine>(*runner_, nullptr,
                                    EngineOptions{.limits = {.max_sequences = 8,
                                                             .max_step_tokens = 96,
                                                             .context = 128,
                                                             .pool_blocks = pool_blocks,
                                                             .max_proposed = 0},
                                                  .vocabulary = golden_.vocab,
                                                  .check_integrity = true});
  }

  // ln softmax of the logits after these tokens.
  std::vector<double> log_softmax(const std::vector<uint32_t>& tokens) const {
    StepBatch batch;
    std::vector<uint32_t> table;
    for (uint32_t i = 0; i <= tokens.size() / kTokensPerBlock; ++i) table.push_back(i);
    batch.add_sequence(0, tokens, table);
    batch.sample(static_cast<uint32_t>(tokens.size()) - 1, {});
    const auto ticket = runner_->submit(batch);
    EXPECT_TRUE(ticket.ok() && runner_->wait(*ticket).ok());
    const std::vector<float> logits = runner_->read_logits(1).value();
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    std::vector<double> logprobs;
    for (const float logit : logits) logprobs.push_back(logit - std::log(sum));
    return logprobs;
  }

  // As transformers' UnbatchedClassifierFreeGuidanceLogitsProcessor computes it.
  std::vector<uint32_t> expected(const GenerationRequest& request) const {
    std::vector<uint32_t> tokens = request.prompt, negative = request.guidance.negative_prompt;
    if (negative.empty()) negative = {request.prompt.back()};
    std::vector<uint32_t> generated;
    for (uint32_t i = 0; i < request.max_tokens; ++i) {
      std::vector<double> scores = log_softmax(tokens);
      if (request.guidance.scale != 1) {
        const std::vector<double> without = log_softmax(negative);
        for (size_t v = 0; v < scores.size(); ++v)
          scores[v] = request.guidance.scale * (scores[v] - without[v]) + without[v];
      }
      generated.push_back(static_cast<uint32_t>(std::ranges::max_element(scores) - scores.begin()));
      tokens.push_back(generated.back());
      negative.push_back(generated.back());
    }
    return generated;
  }

  std::vector<GenerationRequest> requests() const {
    std::vector<GenerationRequest> requests;
    const auto& prompts = golden_.prompts;
    for (size_t i = 0; i < std::min<size_t>(prompts.size(), 4); ++i) {
      GenerationRequest& request = requests.emplace_back();
      request.prompt = prompts[i];
      request.max_tokens = kGuidedTokens;
      request.sampling.temperature = 0;
      request.guidance.scale = i == 1 ? 1.0f : 1.5f + static_cast<float>(i);
      if (i != 2) request.guidance.negative_prompt = prompts[(i + 1) % prompts.size()];
    }
    return requests;
  }

  static std::vector<std::vector<uint32_t>> generated(
      Engine& engine, const std::vector<GenerationRequest>& requests) {
    auto streams = engine.submit(requests);
    EXPECT_TRUE(streams.ok());
    std::vector<std::vector<uint32_t>> ids;
    for (TokenStream& stream : *streams) {
      ids.emplace_back();
      while (const auto token = stream.next()) ids.back().push_back(token->id);
      EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
    }
    return ids;
  }

  GoldenModel golden_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

TEST_F(GuidanceTest, GeneratesWhatTheFormulaSays) {
  const std::vector<GenerationRequest> requests = this->requests();
  const auto plenty = generated(*engine(60), requests);
  uint64_t preemptions = 0;
  for (const uint32_t blocks : {11u, 16u, 17u}) {
    const auto tight = engine(blocks);
    EXPECT_EQ(generated(*tight, requests), plenty) << blocks << " blocks";
    preemptions += tight->metrics().preemptions_recompute.value();
  }
  EXPECT_GT(preemptions, 0u);
  std::vector<GenerationRequest> plain = requests;
  for (GenerationRequest& request : plain) request.guidance = {};
  const auto without = generated(*engine(60), plain);
  uint32_t different = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plenty[i], expected(requests[i])) << "request " << i;
    if (without[i] != plenty[i]) ++different;
  }
  EXPECT_GT(different, 1u) << "guidance makes no difference";
}

}  // namespace
}  // namespace hearth::testing
