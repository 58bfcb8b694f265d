// Requests with the less common samplers, through the engine on a small model: the same tokens
// alone, in a batch, preempted, and with speculation.
#include <cmath>
#include <vector>

#include "engine/sampling/dry.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

struct SampledText {
  std::vector<TokenId> ids;
  std::vector<float> logprobs;
  std::string message;
  bool operator==(const SampledText& other) const {
    return ids == other.ids && logprobs == other.logprobs;
  }
};

SampledText read_text(TokenStream& stream) {
  SampledText text;
  while (const auto token = stream.next()) {
    text.ids.push_back(token->id);
    text.logprobs.push_back(token->logprob);
  }
  text.message = stream.end().message;
  return text;
}

class EngineSamplersTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (tiny_.runner) return;
    ASSERT_ASSIGN(tiny_, TinyModel::open(device(), pipelines(),
                                         {.limits = {.rows = 128,
                                                     .sequences = 8,
                                                     .logit_rows = 64,
                                                     .context = 256,
                                                     .deterministic = true},
                                          .slots = 8,
                                          .kv_blocks = 96}));
  }
  static void TearDownTestSuite() { tiny_ = {}; }

  // Two tokens are far more likely than all others, so that text repeats and guesses are right.
  static std::vector<GenerationRequest> requests() {
    const std::vector<SamplingOptions> options = {
        {.temperature = 0.9f, .mirostat = 2, .mirostat_tau = 1.0f, .mirostat_eta = 0.5f},
        {.temperature = 0, .dry_multiplier = 20.0f, .dry_allowed_length = 2},
        {.temperature = 0.8f, .typical_p = 0.9f, .dry_multiplier = 3.0f, .dry_allowed_length = 1},
        {.temperature = 1.2f, .min_p = 0.01f, .xtc_probability = 0.5f, .dynatemp_range = 0.5f},
        {.temperature = 0.3f, .frequency_penalty = 0.3f, .top_n_sigma = 2.0f},
        {.temperature = 0.7f, .top_p = 0.9f},
    };
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < options.size(); ++i) {
      GenerationRequest request{.max_tokens = 30};
      const std::vector<TokenId> part = tiny_.prompt(9, 200 + i);
      for (int n = 0; n < 4; ++n)
        request.prompt.insert(request.prompt.end(), part.begin(), part.end());
      request.sampling = options[i];
      request.sampling.seed = 50 + i;
      request.biases = {
          {.token = 5, .bias = 60}, {.token = 9, .bias = 60}, {.token = 11, .bias = 58}};
      requests.push_back(request);
    }
    return requests;
  }

  static std::vector<SampledText> run(Engine& engine) {
    auto streams = engine.submit(requests());
    EXPECT_TRUE(streams.ok()) << streams.error().message;
    std::vector<SampledText> texts;
    for (TokenStream& stream : *streams) texts.push_back(read_text(stream));
    return texts;
  }

  const std::vector<SampledText>& alone() {
    static const std::vector<SampledText> texts = [] {
      std::vector<SampledText> one_by_one;
      for (const GenerationRequest& request : requests()) {
        const auto engine = tiny_.engine({.prefix_cache = false});
        auto stream = engine->submit(request);
        EXPECT_TRUE(stream.ok());
        one_by_one.push_back(read_text(*stream));
        EXPECT_EQ(one_by_one.back().ids.size(), request.max_tokens) << one_by_one.back().message;
      }
      return one_by_one;
    }();
    return texts;
  }

  void expect_alike(const std::vector<SampledText>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i].ids, alone()[i].ids) << i;
    EXPECT_EQ(texts, alone());
  }

  static inline TinyModel tiny_;
};

TEST_F(EngineSamplersTest, TheSameInABatch) { expect_alike(run(*tiny_.engine())); }

TEST_F(EngineSamplersTest, TheSameIfPreempted) {
  const auto engine = tiny_.engine({.prefix_cache = false}, /*pool_blocks=*/14);
  expect_alike(run(*engine));
  EXPECT_GT(engine->metrics().preemptions_recompute.value(), 0u);
}

TEST_F(EngineSamplersTest, TheSameWithSpeculation) {
  const auto engine = tiny_.engine({}, 0, false, true, {.method = SpeculationMethod::kNgram});
  expect_alike(run(*engine));
  EXPECT_GT(engine->metrics().accepted_tokens.value(), 5u);
}

// Greedy text would repeat one token; with DRY no token of it continues a repetition with a penalty
// that is larger than the logits are apart.
TEST_F(EngineSamplersTest, DryEndsRepetitions) {
  GenerationRequest plain = requests()[1];
  plain.sampling.dry_multiplier = 0;
  const auto engine = tiny_.engine();
  auto stream = engine->submit(plain);
  ASSERT_TRUE(stream.ok());
  const auto longest_run = [](const std::vector<TokenId>& ids) {
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      run = i > 0 && ids[i] == ids[i - 1] ? run + 1 : 1;
      longest = std::max(longest, run);
    }
    return longest;
  };
  EXPECT_GT(longest_run(read_text(*stream).ids), longest_run(alone()[1].ids));
}

TEST_F(EngineSamplersTest, BadSettingsAreRefusedBeforeAnythingRuns) {
  const auto engine = tiny_.engine();
  GenerationRequest request{.prompt = {1, 2, 3}, .max_tokens = 2};
  request.sampling.mirostat = 1;
  const auto stream = engine->submit(request);
  ASSERT_FALSE(stream.ok());
  EXPECT_NE(stream.error().message.find("mirostat must be 0 or 2"), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
