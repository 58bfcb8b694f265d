#include "engine/ops/hidden_rows.h"

#include <cmath>

#include "params/hidden_rows.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

class HiddenRowsTest : public GpuTest {};

// Two sequences, the first of which is longer than a page. Rows are kept in two steps, and rows of
// the second one are compared with all of them.
TEST_F(HiddenRowsTest, ComparesWithWhatWasKept) {
  constexpr uint32_t kPage = params::kHiddenPageTokens, kSlotPages = 3;
  const uint32_t tokens[] = {kPage + 37, 5};
  for (const uint32_t width : {8u, 64u, 104u, 1032u}) {
    std::vector<Buffer> pages;
    std::vector<uint64_t> table(2 * kSlotPages, 0);
    for (uint32_t slot = 0; slot < 2; ++slot)
      for (uint32_t page = 0; page <= tokens[slot] / kPage; ++page) {
        pages.push_back(poisoned(uint64_t{kPage} * width * 2));
        table[slot * kSlotPages + page] = pages.back().address();
      }
    const Buffer table_buffer = filled(table);
    const HiddenPages store{.table = table_buffer.all(), .slot_pages = kSlotPages};

    // The rows of both sequences, then one that is not kept.
    const uint32_t rows = tokens[0] + tokens[1] + 1;
    std::vector<float> x = random_floats(size_t{rows} * width, width);
    std::fill_n(x.begin(), width, 0.0f);  // zeros are like nothing
    std::vector<params::HiddenPlace> first, second;
    for (uint32_t i = 0; i < rows; ++i) {
      const bool last = i + 1 == rows;
      const uint32_t slot = i < tokens[0] ? 0 : 1;
      const params::HiddenPlace place{
          .slot = slot, .position = last ? params::kNotKept : i - (slot == 1 ? tokens[0] : 0)};
      const params::HiddenPlace none{.position = params::kNotKept};
      first.push_back(i < 200 ? place : none);
      second.push_back(i < 200 ? none : place);
    }
    const std::vector<params::HiddenComparison> comparisons = {
        {.row = rows - 1, .slot = 0, .tokens = tokens[0]},
        {},
        {.row = rows - 1, .slot = 1, .tokens = tokens[1]},
        {.row = 3, .slot = 0, .tokens = 3},
        {.row = 3, .slot = 0, .tokens = 4},
        {.row = 0, .slot = 1, .tokens = 2},
        {.row = 7, .slot = 0, .tokens = 1}};
    const auto compared = static_cast<uint32_t>(comparisons.size());
    const Buffer x_buffer = filled(x), comparison_buffer = filled(comparisons);
    const Buffer similarity = poisoned(uint64_t{compared} * params::kComparisonParts * 4);
    for (const auto& places : {first, second}) {
      const Buffer place_buffer = filled(places);
      run([&](CommandRecorder& recorder) -> Status {
        const HiddenRowsShape shape{.rows = rows, .width = width};
        HEARTH_TRY(record_keep_hidden(
            recorder, pipelines(), choose_keep_hidden(device().caps(), shape),
            {.x = x_buffer.all(), .places = place_buffer.all(), .pages = store, .shape = shape}));
        const HiddenRowsShape by_comparison{.rows = compared, .width = width};
        return record_compare_hidden(recorder, pipelines(),
                                     choose_compare_hidden(device().caps(), by_comparison),
                                     {.x = x_buffer.all(),
                                      .comparisons = comparison_buffer.all(),
                                      .pages = store,
                                      .similarity = similarity.all(),
                                      .shape = by_comparison});
      });
    }
    const std::vector<float> parts = read<float>(similarity);
    const auto cosine = [&](uint32_t a, uint32_t b) {
      double dot = 0, aa = 0, bb = 0;
      for (uint32_t c = 0; c < width; ++c) {
        const double u = x[size_t{a} * width + c], v = x[size_t{b} * width + c];
        dot += u * v;
        aa += u * u;
        bb += v * v;
      }
      return aa * bb > 0 ? dot / std::sqrt(aa * bb) : 0;
    };
    for (uint32_t i = 0; i < compared; ++i) {
      const auto got =
          std::span(parts).subspan(i * params::kComparisonParts, params::kComparisonParts);
      if (comparisons[i].tokens == 0) {
        EXPECT_TRUE(std::ranges::all_of(got, [](float value) { return std::isnan(value); }));
        continue;
      }
      double wanted = -2;
      for (uint32_t t = 0; t < comparisons[i].tokens; ++t)
        wanted = std::max(
            wanted, cosine(comparisons[i].row, (comparisons[i].slot == 1 ? tokens[0] : 0) + t));
      EXPECT_NEAR(std::ranges::max(got), wanted, 5e-4) << "width " << width << ", comparison " << i;
    }
  }
}

// A hidden state that was kept before moves to another page while others are kept.
TEST_F(HiddenRowsTest, CopiesWhatWasKept) {
  constexpr uint32_t kPage = params::kHiddenPageTokens, kRows = 3;
  for (const uint32_t width : {8u, 104u, 1032u}) {
    const uint64_t page_bytes = uint64_t{kPage} * width * 2;
    const Buffer first = poisoned(page_bytes), second = poisoned(page_bytes);
    const std::vector<uint64_t> table = {0, 0, first.address(), second.address()};
    const Buffer table_buffer = filled(table);
    const std::vector<float> x = random_floats(size_t{kRows} * width, width);
    const Buffer x_buffer = filled(x);
    const HiddenRowsShape shape{.rows = kRows, .width = width};
    const auto keep = [&](const std::vector<params::HiddenPlace>& places) {
      const Buffer place_buffer = filled(places);
      run([&](CommandRecorder& recorder) {
        return record_keep_hidden(recorder, pipelines(), choose_keep_hidden(device().caps(), shape),
                                  {.x = x_buffer.all(),
                                   .places = place_buffer.all(),
                                   .pages = {.table = table_buffer.all(), .slot_pages = 2},
                                   .shape = shape});
      });
    };
    const params::HiddenPlace none{.position = params::kNotKept};
    keep({{.slot = 1, .position = kPage + 4}, {.slot = 1, .position = kPage + 5}, none});
    params::HiddenPlace only_copied = none;
    only_copied.slot = 1;
    only_copied.from = kPage + 4;
    only_copied.to = 9;
    keep({only_copied, none, {.slot = 1, .position = 7, .from = kPage + 5, .to = 8}});
    const std::vector<uint16_t> kept = read<uint16_t>(first), before = read<uint16_t>(second);
    const auto row = [&](const std::vector<uint16_t>& page, uint32_t position) {
      return std::span(page).subspan(size_t{position} * width, width);
    };
    EXPECT_TRUE(std::ranges::equal(row(kept, 9), row(before, 4))) << width;
    EXPECT_TRUE(std::ranges::equal(row(kept, 8), row(before, 5))) << width;
    EXPECT_FALSE(std::ranges::equal(row(kept, 7), row(kept, 8))) << width;
    const std::vector<uint16_t> untouched = read<uint16_t>(poisoned(page_bytes));
    for (const uint32_t position : {6u, 10u})
      EXPECT_TRUE(std::ranges::equal(row(kept, position), row(untouched, position))) << width;
  }
}

TEST_F(HiddenRowsTest, AWidthThatDoesNotDivideIsRefused) {
  const Buffer any = poisoned(64);
  const HiddenRowsShape shape{.rows = 1, .width = 12};
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  const Status status = record_keep_hidden(
      recorder, pipelines(), choose_keep_hidden(device().caps(), shape),
      {.x = any.all(), .places = any.all(), .pages = {any.all(), 1}, .shape = shape});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace hearth::testing
