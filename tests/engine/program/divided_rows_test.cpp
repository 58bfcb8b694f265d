// From how many rows on a tensor split divides them, for devices and links that we do not have.
#include "engine/divided_rows.h"

#include <gtest/gtest.h>

#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

DividedRows divided_rows_on(const char* profile, uint32_t ranks, const MeetingCost& cost) {
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
  const DividedRows choice = divided_rows_on("h200", 2, slow);
  const uint32_t rows = choice.from;
  EXPECT_GE(rows, 64u);
  EXPECT_LE(rows, 256u);
  // The cost says the same, of that size and of half of it.
  const DividedSum sum{.rows = rows, .width = 1024, .ranks = 2, .halves = true};
  DividedSum half = sum;
  half.rows /= 2;
  EXPECT_EQ(choice.largest, 2048u);
  EXPECT_GT(choice.saved_seconds, seconds_saved(slow, sum));
  EXPECT_GT(seconds_saved(slow, sum), 0);
  EXPECT_LT(seconds_saved(slow, half), 0);
}

TEST(DividedRows, NeverOverALinkThatTakesNoTime) {
  const MeetingCost fast{
      .link = {{0, 1e-6}, {1 << 20, 2e-6}}, .submit_seconds = 30e-6, .byte_seconds = 1 / 25e9};
  const DividedRows choice = divided_rows_on("h200", 2, fast);
  EXPECT_EQ(choice.from, 0u);
  EXPECT_LT(choice.saved_seconds, 0);
}

TEST(DividedRows, TheLineSaysWhichAndWhy) {
  const MeetingCost cost{.link = {{64, 1e-6}, {1 << 20, 120e-6, {1, 2}}}};
  EXPECT_EQ(divided_rows_text({.from = 256, .largest = 2048, .saved_seconds = 3e-3}, cost),
            "norms are divided over the ranks in steps of 256 tokens or more, which saves 3000 us "
            "per sum of 2048 tokens (as measured: 1 MiB takes 120 us between ranks 1 and 2)");
  EXPECT_EQ(divided_rows_text({.largest = 512, .saved_seconds = -0.5e-3}, cost),
            "norms are whole on every rank, because dividing them would add 500 us to a sum of 512 "
            "tokens (as measured: 1 MiB takes 120 us between ranks 1 and 2)");
  EXPECT_EQ(divided_rows_text(DividedRows{}, cost),
            "norms are whole on every rank (steps have fewer tokens than there are ranks)");
  EXPECT_EQ(divided_rows_text(64, "--divide-rows"),
            "norms are divided over the ranks in steps of 64 tokens or more (--divide-rows)");
  EXPECT_EQ(divided_rows_text(0, "--deterministic"),
            "norms are whole on every rank (--deterministic)");
}

}  // namespace
}  // namespace hearth::testing
