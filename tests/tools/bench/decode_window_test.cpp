#include "tools/bench/decode_window.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

StepRecord step(double end_seconds, uint32_t members, uint32_t tokens, uint32_t sampled) {
  StepRecord record;
  record.submit_seconds = end_seconds - 1;
  record.run_seconds = 1;
  record.members.resize(members);
  record.tokens = tokens;
  record.sampled_tokens = sampled;
  return record;
}

// It used to find none if the first step was a decode step, as that of a prompt of one token is.
TEST(DecodeWindow, IsFromTheFirstStepTogetherToTheFirstEnd) {
  std::vector<StepRecord> records{step(1, 2, 2, 2), step(3, 2, 2, 2), step(4, 2, 8, 5),
                                  step(6, 2, 6, 4)};
  records.back().finished = {1};
  const DecodeWindow window = decode_window(records, 2);
  EXPECT_EQ(window.steps, 2u);
  EXPECT_EQ(window.tokens, 7u);
  EXPECT_EQ(window.rows, 10u);
  EXPECT_DOUBLE_EQ(window.seconds, 3);
  EXPECT_EQ(decode_window(records, 3).steps, 0u);
  EXPECT_EQ(decode_window({}, 1).steps, 0u);
}

}  // namespace
}  // namespace hearth
