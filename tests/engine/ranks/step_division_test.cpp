#include "engine/ranks/step_division.h"

#include <gtest/gtest.h>

#include "engine/sampling/sampler.h"

namespace hearth::testing {
namespace {

params::SamplingRow slot_row(uint32_t slot) {
  params::SamplingRow row{};
  row.flags = params::kSamplingActive;
  row.id_index = slot;
  return row;
}

// A decode, a prompt of six tokens, and another decode.
StepBatch division_batch() {
  StepBatch batch;
  batch.add_sequence(20, std::vector<uint32_t>{1}, std::vector<uint32_t>{4, 5});
  batch.add_sequence(3, std::vector<uint32_t>{2, 3, 4, 5, 6, 7}, std::vector<uint32_t>{6});
  batch.add_sequence(9, std::vector<uint32_t>{8}, std::vector<uint32_t>{7});
  batch.sample(0, slot_row(0));
  batch.sample(6, slot_row(1));
  batch.sample(7, slot_row(2));
  batch.words = {11, 12};
  return batch;
}

TEST(StepDivision, TakesASequenceApartWhereAPartEnds) {
  const std::vector<StepBatch> parts = divide_step(division_batch(), 2, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].ids, (std::vector<uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(parts[1].ids, (std::vector<uint32_t>{5, 6, 7, 8}));
  ASSERT_EQ(parts[0].sequences.size(), 2u);
  EXPECT_EQ(parts[0].sequences[1].first_row, 1u);
  EXPECT_EQ(parts[0].sequences[1].rows, 3u);
  EXPECT_EQ(parts[0].sequences[1].first_position, 3u);
  ASSERT_EQ(parts[1].sequences.size(), 2u);
  EXPECT_EQ(parts[1].sequences[0].first_row, 0u);
  EXPECT_EQ(parts[1].sequences[0].rows, 3u);
  EXPECT_EQ(parts[1].sequences[0].first_position, 6u);
  EXPECT_EQ(parts[1].sequences[1].first_row, 3u);
  EXPECT_EQ(parts[1].sequences[1].block_table, 3u);
  // Logits are those of the same rows, in the same order.
  EXPECT_EQ(parts[0].logit_rows, (std::vector<uint32_t>{0}));
  EXPECT_EQ(parts[1].logit_rows, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(parts[1].sampling[0].id_index, 1u);
  EXPECT_EQ(parts[1].sampling[1].id_index, 2u);
  for (const StepBatch& part : parts) {
    EXPECT_EQ(part.block_tables, division_batch().block_tables);
    EXPECT_EQ(part.words, division_batch().words);
  }
}

TEST(StepDivision, APartHasEnoughRows) {
  EXPECT_EQ(divide_step(division_batch(), 4, 2).size(), 4u);
  EXPECT_EQ(divide_step(division_batch(), 4, 3).size(), 2u);
  EXPECT_EQ(divide_step(division_batch(), 2, 5).size(), 1u);
  EXPECT_EQ(divide_step(division_batch(), 100, 1).size(), 8u);
}

// Proposals are among the words, which every part has.
TEST(StepDivision, VerificationRowsArePlain) {
  StepBatch batch = division_batch();
  const uint32_t proposals = batch.add_proposals(std::vector<uint32_t>{8, 9});
  verify_only(batch.sampling[2], {.proposals = proposals, .path = 1, .followers = 2});
  const std::vector<StepBatch> parts = divide_step(batch, 2, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].sampling[1].proposals, proposals);
  EXPECT_EQ(parts[1].sampling[1].followers, 2u);
  EXPECT_EQ(parts[1].words, batch.words);
}

TEST(StepDivision, StepsWithMoreThanPlainRowsStayWhole) {
  const auto parts_of = [](auto change) {
    StepBatch batch = division_batch();
    change(batch);
    return divide_step(batch, 2, 1).size();
  };
  EXPECT_EQ(parts_of([](StepBatch&) {}), 2u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.ancestors = {0, 1}; }), 1u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.commit(0, std::vector<uint32_t>{1}); }), 1u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.pool(0, 1); }), 1u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.add_padding(batch.sequences[0]); }), 1u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.sampling[0].flags |= params::kSamplingMix; }),
            1u);
  EXPECT_EQ(parts_of([](StepBatch& batch) { batch.logit_rows = {6, 0, 7}; }), 1u);
}

}  // namespace
}  // namespace hearth::testing
