#include <map>

#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

class StepRunnerTest : public GpuTest {
 protected:
  // A prompt of so many tokens, whose last logits are wanted.
  static StepBatch prompt_step(const TinyModel& tiny, uint32_t tokens) {
    StepBatch batch;
    batch.add_sequence(0, tiny.prompt(tokens, 0), std::vector<BlockId>{0});
    batch.logit_rows = {tokens - 1};
    batch.sampling = {params::SamplingRow{}};
    return batch;
  }
};

// Of more sizes than are kept, the one that was not used for longest is given up, even while a step
// of it still runs, and is there again when it is needed.
TEST_F(StepRunnerTest, FewRecordingsAreKept) {
  constexpr size_t kMost = 2;
  ASSERT_ASSIGN(const TinyModel tiny,
                TinyModel::open(device(), pipelines(),
                                {.limits = {.rows = 8, .sequences = 1, .context = 64},
                                 .slots = 1,
                                 .kv_blocks = 4,
                                 .most_recordings = kMost}));
  std::map<uint32_t, std::vector<float>> logits;  // by the tokens of a step
  for (const uint32_t tokens : {1u, 2u, 3u, 1u, 2u, 3u}) {
    StepTicket last;
    for (const uint32_t more : {1u, 2u, 0u}) {  // the one that is looked at comes last
      ASSERT_ASSIGN(last, tiny.runner->submit(prompt_step(tiny, (tokens + more - 1) % 3 + 1)));
      EXPECT_LE(tiny.runner->recorded_steps(), kMost);
    }
    ASSERT_OK(tiny.runner->wait(last));
    ASSERT_ASSIGN(const std::vector<float> these, tiny.runner->read_logits(1));
    EXPECT_EQ(logits.try_emplace(tokens, these).first->second, these) << tokens;
  }
  EXPECT_NE(logits.at(1), logits.at(2));
}

}  // namespace
}  // namespace hearth::testing
