// Contrastive decoding in the engine: the tokens are those of the paper's formula, computed on the
// host from the logits of both models for every text from its beginning. Two golden models are
// expert and amateur.
#include <algorithm>
#include <memory>

#include "engine/engine.h"
#include "engine/model/amateur_executor.h"
#include "engine/model/model.h"
#include "engine/weights/model_file.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_sampling.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kContrastTokens = 14;

// A golden model, and its logits after any tokens.
struct GoldenRunner {
  static Result<GoldenRunner> open(Device& device, const std::string& name) {
    GoldenRunner one;
    HEARTH_ASSIGN(one.golden, read_golden_model(name));
    HEARTH_ASSIGN(one.file, ModelFile::open(one.golden.folder));
    HEARTH_ASSIGN(one.model, Model::load(device, *one.file, {.context = one.golden.context}));
    return one;
  }
  std::vector<float> logits(const std::vector<uint32_t>& tokens) const {
    StepBatch batch;
    std::vector<uint32_t> table;
    for (uint32_t i = 0; i <= tokens.size() / kTokensPerBlock; ++i) table.push_back(i);
    batch.add_sequence(0, tokens, table);
    batch.sample(static_cast<uint32_t>(tokens.size()) - 1, {});
    const auto ticket = runner->submit(batch);
    EXPECT_TRUE(ticket.ok() && runner->wait(*ticket).ok());
    return runner->read_logits(1).value();
  }

  GoldenModel golden;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Model> model;
  std::unique_ptr<StepRunner> runner;
};

class ContrastTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_ASSIGN(expert_, GoldenRunner::open(device(), "llama"));
    ASSERT_ASSIGN(amateur_, GoldenRunner::open(device(), "qwen3"));
    ASSERT_EQ(expert_.golden.vocab, amateur_.golden.vocab);
    const StepRunnerOptions options{
        .limits = {.rows = 96, .sequences = 8, .logit_rows = 40, .context = 128},
        .slots = 8,
        .kv_blocks = 40};
    ASSERT_ASSIGN(expert_.runner,
                  StepRunner::create(device(), pipelines(), *expert_.model, options));
    ASSERT_ASSIGN(amateur_.runner, StepRunner::create(device(), pipelines(), *amateur_.model,
                                                      amateur_options(*expert_.runner)));
    executor_ = std::make_unique<AmateurExecutor>(*expert_.runner, *amateur_.runner);
  }

  std::unique_ptr<Engine> engine(uint32_t pool_blocks, SpeculationMethod speculation) {
    return std::make_unique<Engine>(
        *executor_, nullptr,
        EngineOptions{.limits = {.max_sequences = 8,
                                 .max_step_tokens = 96,
                                 .context = 128,
                                 .pool_blocks = pool_blocks,
                                 .max_proposed = 32},
                      .vocabulary = expert_.golden.vocab,
                      .speculation = {.method = speculation},
                      .contrast = ContrastOptions{.alpha = 0.1f, .beta = 0.8f},
                      .check_integrity = true});
  }

  // What the request generates by the formula of the paper.
  std::vector<uint32_t> expected(const GenerationRequest& request) const {
    std::vector<uint32_t> tokens = request.prompt;
    const LogitMix mix{.own_weight = 1,
                       .other_weight = -request.contrast_beta.value_or(0.8f),
                       .plausible = request.contrast_alpha.value_or(0.1f)};
    for (uint32_t i = 0; i < request.max_tokens; ++i) {
      std::vector<float> logits = expert_.logits(tokens);
      if (mix.other_weight != 0) logits = reference_mix(logits, amateur_.logits(tokens), mix);
      tokens.push_back(static_cast<uint32_t>(std::ranges::max_element(logits) - logits.begin()));
    }
    return {tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), tokens.end()};
  }

  std::vector<GenerationRequest> requests() const {
    std::vector<GenerationRequest> requests;
    for (size_t i = 0; i < expert_.golden.prompts.size(); ++i) {
      GenerationRequest& request = requests.emplace_back();
      request.prompt = expert_.golden.prompts[i];
      request.max_tokens = kContrastTokens;
      request.sampling.temperature = 0;
      if (i == 1) request.contrast_beta = 0;  // plain decoding in the same batch
      if (i == 2) request.contrast_alpha = 0.5f;
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

  GoldenRunner expert_, amateur_;
  std::unique_ptr<AmateurExecutor> executor_;
};

TEST_F(ContrastTest, GeneratesWhatTheFormulaSays) {
  const std::vector<GenerationRequest> requests = this->requests();
  std::vector<std::vector<uint32_t>> plain, speculated;
  plain = generated(*engine(40, SpeculationMethod::kNone), requests);
  // So few blocks that requests are preempted, in both models; with which number depends on when
  // they need another one.
  uint64_t preemptions = 0;
  for (const uint32_t blocks : {7u, 8u, 12u, 13u}) {
    const auto tight = engine(blocks, SpeculationMethod::kNone);
    EXPECT_EQ(generated(*tight, requests), plain) << blocks << " blocks";
    preemptions += tight->metrics().preemptions_recompute.value();
  }
  EXPECT_GT(preemptions, 0u);
  speculated = generated(*engine(40, SpeculationMethod::kNgram), requests);
  uint32_t different = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<uint32_t> wanted = expected(requests[i]);
    EXPECT_EQ(plain[i], wanted) << "request " << i;
    EXPECT_EQ(speculated[i], wanted) << "request " << i;
    GenerationRequest without = requests[i];
    without.contrast_beta = 0;
    if (expected(without) != wanted) ++different;
  }
  EXPECT_GT(different, 1u) << "the amateur makes no difference";
}

TEST_F(ContrastTest, RefusesSettingsOutOfRange) {
  const auto engine = this->engine(40, SpeculationMethod::kNone);
  GenerationRequest request{.prompt = {1, 2}, .max_tokens = 2};
  request.contrast_alpha = 1.5f;
  EXPECT_EQ(engine->submit(request).error().message,
            "alpha of contrastive decoding must be between 0 and 1");
  request.contrast_alpha = 0.5f;
  request.contrast_beta = -1;
  EXPECT_EQ(engine->submit(request).error().message,
            "beta of contrastive decoding must be between 0 and 100");
}

}  // namespace
}  // namespace hearth::testing
