// A prompt's log-probabilities on a device are those of the model's logits.
#include <algorithm>
#include <cmath>

#include "engine/sampling/sampler.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/sampling.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

class ScoringTest : public GpuTest {
 protected:
  static constexpr uint32_t kTokens = 60;

  void SetUp() override {
    GpuTest::SetUp();
    if (tiny_.runner) return;
    ASSERT_ASSIGN(tiny_, TinyModel::open(device(), pipelines(),
                                         {.limits = {.rows = kTokens + 4,
                                                     .sequences = 4,
                                                     .logit_rows = kTokens + 4,
                                                     .context = 128},
                                          .slots = 4,
                                          .kv_blocks = 64}));
  }
  static void TearDownTestSuite() { tiny_ = {}; }

  // From the logits of one step over the whole prompt, as `hearth perplexity` has them.
  std::vector<double> expected(std::span<const TokenId> prompt) {
    StepBatch batch;
    const std::vector<uint32_t> blocks{0, 1, 2, 3};
    batch.add_sequence(0, prompt, blocks);
    for (uint32_t i = 0; i + 1 < prompt.size(); ++i) batch.sample(i, {});
    auto ticket = tiny_.runner->submit(batch);
    EXPECT_TRUE(ticket.ok());
    EXPECT_TRUE(tiny_.runner->wait(*ticket).ok());
    const auto logits = tiny_.runner->read_logits(ticket->logit_rows).value();
    const size_t vocabulary = tiny_.model->config().vocabulary;
    std::vector<double> scores;
    for (size_t i = 0; i + 1 < prompt.size(); ++i) {
      const auto row = std::span(logits).subspan(i * vocabulary, vocabulary);
      const double largest = *std::ranges::max_element(row);
      double sum = 0;
      for (const float logit : row) sum += std::exp(logit - largest);
      scores.push_back(row[prompt[i + 1]] - largest - std::log(sum));
    }
    return scores;
  }

  static inline TinyModel tiny_;
};

TEST_F(ScoringTest, AgreesWithTheLogitsHoweverThePromptIsDivided) {
  const std::vector<TokenId> prompt = tiny_.prompt(kTokens, 3);
  const std::vector<double> scores = expected(prompt);
  for (const uint32_t chunk : {0u, 7u})
    for (const uint32_t top : {0u, 3u}) {
      const auto engine = tiny_.engine({.max_chunk_tokens = chunk});
      GenerationRequest request{.prompt = prompt};
      request.prompt_logprobs = true;
      request.generate = false;
      // What a request samples with does not change what the model expected.
      request.sampling.temperature = 0.3f;
      request.sampling.repetition_penalty = 1.5f;
      request.sampling.top_logprobs = top;
      request.biases = {{.token = prompt[5], .bias = 10.0f}};
      GenerationRequest other{.prompt = tiny_.prompt(30, 9), .max_tokens = 12};
      auto stream = engine->submit(request);
      auto beside = engine->submit(other);
      ASSERT_TRUE(stream.ok() && beside.ok());
      while (beside->next()) {
      }
      EXPECT_FALSE(stream->next());
      ASSERT_EQ(stream->prompt_logprobs().size(), scores.size()) << stream->end().message;
      for (size_t i = 0; i < scores.size(); ++i) {
        const PromptLogprob& entry = stream->prompt_logprobs()[i];
        // Steps of other sizes run other kernels, some of which add up in 16 bits.
        EXPECT_NEAR(entry.logprob, scores[i], 3e-3 * std::abs(scores[i])) << "token " << i + 1;
        ASSERT_EQ(entry.top.size(), top);
        for (const TopLogprob& best : entry.top) {
          if (best.id == prompt[i + 1]) {
            EXPECT_FLOAT_EQ(best.logprob, entry.logprob);
          }
          if (&best == entry.top.data()) {
            EXPECT_GE(best.logprob, entry.logprob);
          }
        }
      }
    }
}

TEST_F(ScoringTest, RefusesToScoreATokenOutsideTheVocabulary) {
  StepBatch batch;
  const std::vector<uint32_t> ids{1, 2}, blocks{0};
  batch.add_sequence(0, ids, blocks);
  batch.sample(0, make_score_row(tiny_.model->config().vocabulary, 0));
  EXPECT_FALSE(tiny_.runner->submit(batch).ok());
}

class ScoreRowTest : public SamplingGpuTest {
 protected:
  std::vector<params::SamplingResult> score(const SamplingPlan& plan, const SamplingShape& shape,
                                            const std::vector<float>& logits,
                                            const std::vector<params::SamplingRow>& rows) {
    const Buffer logits_buffer = filled(logits), rows_buffer = filled(rows);
    const Buffer nothing = filled(std::vector<uint32_t>(kHistoryCapacity * 2, 0));
    const Buffer scratch = poisoned(plan.scratch_bytes()), ids = poisoned(4);
    const Buffer counts = filled(std::vector<uint32_t>(shape.rows, 0));
    const Buffer results = poisoned(shape.rows * sizeof(params::SamplingResult));
    const Buffer top =
        poisoned(uint64_t{shape.rows} * params::kMaxTopLogprobs * sizeof(params::TokenLogprob));
    run([&](CommandRecorder& recorder) {
      return record_sampling(recorder, pipelines(), plan,
                             {.logits = logits_buffer.all(),
                              .rows = rows_buffer.all(),
                              .biases = nothing.all(),
                              .history_lengths = nothing.all(),
                              .history = nothing.all(),
                              .scratch = scratch.all(),
                              .counts = counts.all(),
                              .ids = ids.all(),
                              .results = results.all(),
                              .top = top.all(),
                              .words = nothing.all(),
                              .shape = shape,
                              .history_capacity = kHistoryCapacity});
    });
    return read<params::SamplingResult>(results);
  }
};

TEST_F(ScoreRowTest, ReportsTheGivenTokenWithEveryPlan) {
  constexpr uint32_t kVocab = 4099, kRows = 5;
  auto logits = random_floats(size_t{kRows} * kVocab, 3, 4.0f);
  const uint32_t given[kRows] = {0, kVocab - 1, 77, 5, 4098};
  logits[2 * kVocab + 77] = -kInfinity;
  logits[3 * kVocab + 900] = kNan;
  for (const bool greedy : {true, false}) {
    std::vector<params::SamplingRow> rows;
    for (const uint32_t token : given) rows.push_back(make_score_row(token, greedy ? 0 : 2));
    const SamplingShape shape{.rows = kRows, .vocab = kVocab, .greedy = greedy};
    for (const SamplingPlan& plan : {choose_sampling(device().caps(), shape), gpu_plan(shape)}) {
      const auto results = score(plan, shape, logits, rows);
      for (uint32_t r = 0; r < kRows; ++r) {
        SCOPED_TRACE(r);
        if (r == 3) {
          EXPECT_EQ(results[r].kept, params::kNanLogits);
          continue;
        }
        EXPECT_EQ(results[r].id, given[r]);
        EXPECT_EQ(results[r].kept, 1u);
        const auto row = std::span(logits).subspan(r * kVocab, kVocab);
        const double largest = *std::ranges::max_element(row);
        double sum = 0;
        for (const float logit : row) sum += std::exp(logit - largest);
        const double expected = row[given[r]] - largest - std::log(sum);
        if (r == 2)
          EXPECT_EQ(results[r].logprob, -kInfinity);
        else
          EXPECT_NEAR(results[r].logprob, expected, 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::testing
