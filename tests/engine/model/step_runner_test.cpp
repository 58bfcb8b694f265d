#include <array>
#include <map>
#include <numeric>
#include <span>

#include "engine/sampling/sampler.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

class StepRunnerTest : public GpuTest {
 protected:
  // A prompt of `tokens` tokens that wants the logits of the last.
  static StepBatch prompt_step(const TinyModel& tiny, uint32_t tokens) {
    StepBatch batch;
    batch.add_sequence(0, tiny.prompt(tokens, 0), std::vector<BlockId>{0});
    batch.logit_rows = {tokens - 1};
    batch.sampling = {params::SamplingRow{}};
    return batch;
  }
};

// With more step sizes than recordings are kept, the least recently used one is dropped, even while
// its step is in flight, and is recorded again when it is needed.
TEST_F(StepRunnerTest, TheLeastRecentlyUsedRecordingIsDropped) {
  constexpr size_t kMost = 2;
  ASSERT_ASSIGN(const TinyModel tiny,
                TinyModel::open(device(), pipelines(),
                                {.limits = {.rows = 8, .sequences = 1, .context = 64},
                                 .slots = 1,
                                 .kv_blocks = 4,
                                 .most_recordings = kMost}));
  std::map<uint32_t, std::vector<float>> logits;  // by number of tokens in the step
  for (const uint32_t tokens : {1u, 2u, 3u, 1u, 2u, 3u}) {
    StepTicket last;
    for (const uint32_t more : {1u, 2u, 0u}) {  // the one that is checked comes last
      ASSERT_ASSIGN(last, tiny.runner->submit(prompt_step(tiny, (tokens + more - 1) % 3 + 1)));
      EXPECT_LE(tiny.runner->recorded_steps(), kMost);
    }
    ASSERT_OK(tiny.runner->wait(last));
    ASSERT_ASSIGN(const std::vector<float> these, tiny.runner->read_logits(1));
    EXPECT_EQ(logits.try_emplace(tokens, these).first->second, these) << tokens;
  }
  EXPECT_NE(logits.at(1), logits.at(2));
}

// The last layer continues with the wanted rows only; a step that wants none still fills the cache
// correctly.
TEST_F(StepRunnerTest, WantedRowsEqualThoseOfAStepThatWantsAll) {
  constexpr uint32_t kTokens = 9;
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), pipelines(),
                                                      {.limits = {.rows = 2 * kTokens,
                                                                  .sequences = 2,
                                                                  .logit_rows = 2 * kTokens,
                                                                  .context = 64,
                                                                  .deterministic = true},
                                                       .slots = 2,
                                                       .kv_blocks = 8}));
  const size_t vocabulary = tiny.model->config().vocabulary;
  const std::array prompts = {tiny.prompt(kTokens, 0), tiny.prompt(kTokens, 1)};
  // Logits of some rows of a step that continues two sequences after `begin` tokens.
  const auto logits = [&](uint32_t begin, const std::vector<uint32_t>& rows) {
    StepBatch batch;
    for (uint32_t i = 0; i < 2; ++i)
      batch.add_sequence(begin, std::span(prompts[i]).subspan(begin), std::vector<BlockId>{i});
    batch.logit_rows = rows;
    batch.sampling.resize(rows.size());
    auto ticket = tiny.runner->submit(batch);
    EXPECT_TRUE(ticket.ok() && tiny.runner->wait(*ticket).ok());
    auto read = tiny.runner->read_logits(static_cast<uint32_t>(rows.size()));
    EXPECT_TRUE(read.ok());
    return read.ok() ? std::move(read).value() : std::vector<float>();
  };
  const auto row_of = [&](const std::vector<float>& all, size_t row) {
    return std::vector(all.begin() + row * vocabulary, all.begin() + (row + 1) * vocabulary);
  };

  std::vector<uint32_t> every(2 * kTokens);
  std::iota(every.begin(), every.end(), 0u);
  const std::vector<float> all = logits(0, every);
  ASSERT_EQ(all.size(), every.size() * vocabulary);
  EXPECT_NE(row_of(all, 8), row_of(all, 17));
  for (const std::vector<uint32_t>& wanted :
       {std::vector<uint32_t>{17}, {8, 17}, {3, 8, 17}, {0, 2, 5, 8, 9, 11, 12, 14, 15, 16, 17}}) {
    const std::vector<float> some = logits(0, wanted);
    ASSERT_EQ(some.size(), wanted.size() * vocabulary);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(row_of(some, i), row_of(all, wanted[i])) << wanted[i];
  }

  // By now the cache has other keys and values; a step with all but the last tokens restores them.
  StepBatch other, first;
  for (uint32_t i = 0; i < 2; ++i) {
    other.add_sequence(0, tiny.prompt(kTokens, i + 7), std::vector<BlockId>{i});
    first.add_sequence(0, std::span(prompts[i]).first(kTokens - 1), std::vector<BlockId>{i});
  }
  for (const StepBatch* batch : {&other, &first}) {
    ASSERT_ASSIGN(const StepTicket ticket, tiny.runner->submit(*batch));
    ASSERT_OK(tiny.runner->wait(ticket));
  }
  const std::vector<float> last = logits(kTokens - 1, {0, 1});
  EXPECT_EQ(row_of(last, 0), row_of(all, 8));
  EXPECT_EQ(row_of(last, 1), row_of(all, 17));
}

// Deterministic steps use other kernels, the same for any number of rows: fusion for one or a few
// rows must not change a model's results. Prompts of three tokens, then one token each.
TEST_F(StepRunnerTest, AnyNumberOfRowsIsCloseToDeterministicSteps) {
  constexpr uint32_t kMost = 40, kTokens = 3;
  const auto open = [&](bool deterministic) {
    return TinyModel::open(device(), pipelines(),
                           {.limits = {.rows = kMost * kTokens,
                                       .sequences = kMost,
                                       .logit_rows = kMost,
                                       .context = 64,
                                       .deterministic = deterministic},
                            .slots = kMost,
                            .kv_blocks = kMost});
  };
  ASSERT_ASSIGN(const TinyModel fast, open(false));
  ASSERT_ASSIGN(const TinyModel exact, open(true));
  const auto logits = [](const TinyModel& tiny, uint32_t sequences) {
    StepBatch prompts, next;
    for (uint32_t i = 0; i < sequences; ++i) {
      const std::vector<TokenId> ids = tiny.prompt(kTokens + 1, i);
      prompts.add_sequence(0, std::span(ids).first(kTokens), std::vector<BlockId>{i});
      next.add_sequence(kTokens, std::span(ids).last(1), std::vector<BlockId>{i});
      prompts.logit_rows.push_back(i * kTokens + kTokens - 1);
      next.logit_rows.push_back(i);
    }
    std::vector<float> both;
    for (StepBatch* batch : {&prompts, &next}) {
      batch->sampling.resize(sequences);
      EXPECT_TRUE(tiny.runner->wait(tiny.runner->submit(*batch).value()).ok());
      const std::vector<float> found = tiny.runner->read_logits(sequences).value();
      both.insert(both.end(), found.begin(), found.end());
    }
    return both;
  };
  // From many rows to few, so that no step finds results of a smaller one in memory.
  for (const uint32_t sequences : {kMost, 13u, 8u, 5u, 2u, 1u}) {
    const std::vector<float> wanted = logits(exact, sequences);
    EXPECT_LT(nmse(logits(fast, sequences), std::vector<double>(wanted.begin(), wanted.end())),
              1e-4)
        << sequences;
  }
}

// One kernel samples if all rows are greedy, two if one row is not or needs more.
TEST_F(StepRunnerTest, AGreedyRowIsTheSameInAMixedBatch) {
  constexpr uint32_t kTokens = 5;
  ASSERT_ASSIGN(const TinyModel tiny,
                TinyModel::open(device(), pipelines(),
                                {.limits = {.rows = 2 * kTokens, .sequences = 2, .context = 64},
                                 .slots = 2,
                                 .kv_blocks = 4}));
  const auto sampled = [&](const SamplingOptions& other) {
    StepBatch batch;
    for (uint32_t i = 0; i < 2; ++i)
      batch.add_sequence(0, tiny.prompt(kTokens, i), std::vector<BlockId>{i});
    batch.logit_rows = {kTokens - 1, 2 * kTokens - 1};
    batch.sampling = {make_sampling_row({.temperature = 0}, {.id_index = 0}).value(),
                      make_sampling_row(other, {.id_index = 1}).value()};
    const StepTicket ticket = tiny.runner->submit(batch).value();
    const StepOutcome outcome = tiny.runner->wait(ticket).value();
    return std::vector(outcome.sampled.begin(), outcome.sampled.end());
  };
  const std::vector<params::SamplingResult> alone = sampled({.temperature = 0});
  EXPECT_EQ(tiny.runner->recorded_steps(), 1u);
  const std::vector<params::SamplingResult> mixed = sampled({.top_k = 40, .seed = 7});
  EXPECT_EQ(tiny.runner->recorded_steps(), 2u) << "the same kernels for both";
  const std::vector<params::SamplingResult> logprobs =
      sampled({.temperature = 0, .top_logprobs = 2});
  EXPECT_EQ(tiny.runner->recorded_steps(), 2u);
  for (const auto* other : {&mixed, &logprobs}) {
    EXPECT_EQ(alone[0].id, (*other)[0].id);
    EXPECT_EQ(alone[0].logprob, (*other)[0].logprob);
  }
  EXPECT_EQ(alone[0].kept, 1u);
  EXPECT_EQ(alone[1].id, logprobs[1].id);
  EXPECT_EQ(alone[1].logprob, logprobs[1].logprob);
  EXPECT_LT(alone[0].logprob, 0.0f);
}

}  // namespace
}  // namespace hearth::testing
