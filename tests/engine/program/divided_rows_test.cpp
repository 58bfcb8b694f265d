// From how many rows on a tensor split divides them, for devices and links that we do not have.
#include "engine/divided_rows.h"

#include <gtest/gtest.h>

#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

uint32_t divided_rows_on(const char* profile, uint32_t ranks, const MeetingCost& cost) {
  MadeModelInfo info = small_model("llama");
  info.width = 1024;
  info.heads = 8;
  info.kv_heads = 4;
  auto model = PlannedModel::create(info, {.index = 0, .count = ranks});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return choose_divided_rows(find_device_profile(profile).value(), (*model)->model(),
                             {.rows = 2048, .sequences = 64, .context = 2048}, cost);
}

// 10 GbE: what a long prompt saves is more than another message and another submission.
TEST(DividedRows, LongPromptsOverASlowLink) {
  const MeetingCost slow{.link = {{0, 40e-6}, {1 << 20, 40e-6 + (1 << 20) / 1.1e9}},
                         .submit_seconds = 30e-6,
                         .byte_seconds = 1 / 25e9};
  const uint32_t rows = divided_rows_on("h200", 2, slow);
  EXPECT_GE(rows, 64u);
  EXPECT_LE(rows, 256u);
  // The cost says the same, of that size and of half of it.
  const DividedSum sum{.rows = rows, .width = 1024, .ranks = 2, .halves = true};
  DividedSum half = sum;
  half.rows /= 2;
  EXPECT_GT(seconds_saved(slow, sum), 0);
  EXPECT_LT(seconds_saved(slow, half), 0);
}

TEST(DividedRows, NeverOverALinkThatTakesNoTime) {
  const MeetingCost fast{
      .link = {{0, 1e-6}, {1 << 20, 2e-6}}, .submit_seconds = 30e-6, .byte_seconds = 1 / 25e9};
  EXPECT_EQ(divided_rows_on("h200", 2, fast), 0u);
}

}  // namespace
}  // namespace hearth::testing
