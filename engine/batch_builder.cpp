#include "engine/batch_builder.h"

#include <algorithm>
#include <span>

#include "params/embed.h"

namespace hearth {
namespace {

// Most block-table entries that a batch reserves in advance.
constexpr size_t kMaxReservedBlockIds = size_t{1} << 20;

}  // namespace

BatchBuilder::BatchBuilder(const SchedulerLimits& limits) {
  const size_t sequences = limits.max_sequences;
  batch_.reserve(limits.max_step_tokens, sequences,
                 std::min(kMaxReservedBlockIds, sequences * blocks_for(limits.context)));
}

const StepBatch& BatchBuilder::build(const BatchPlan& plan, const RequestTable& requests,
                                     std::vector<RequestId>& sampled) {
  batch_.clear();
  sampled.clear();
  for (const BatchMember& member : plan.members) {
    const ActiveRequest& request = requests.at(member.request);
    add_member(plan, member, request);
    if (!member.samples) continue;
    add_sampled_row(member, request);
    sampled.push_back(member.request);
  }
  if (plan.padding_tokens > 0) add_padding(plan.padding_tokens);
  return batch_;
}

void BatchBuilder::add_member(const BatchPlan& plan, const BatchMember& member,
                              const ActiveRequest& request) {
  const uint32_t known = member.tokens - (member.input_on_gpu ? 1 : 0);
  batch_.add_sequence(
      member.first_position,
      std::span<const TokenId>(request.tokens()).subspan(member.first_position, known),
      std::span<const BlockId>(plan.block_ids).subspan(member.first_block, member.blocks));
  if (!member.input_on_gpu) return;
  batch_.ids.push_back(params::kSampledId | member.slot);
  ++batch_.sequences.back().rows;
}

// Samples from the last row of the member that was added last.
void BatchBuilder::add_sampled_row(const BatchMember& member, const ActiveRequest& request) {
  batch_.logit_rows.push_back(static_cast<uint32_t>(batch_.ids.size()) - 1);
  batch_.sampling.push_back(
      request.sampling_row(member.slot, member.first_position + member.tokens));
}

void BatchBuilder::add_padding(uint32_t tokens) {
  if (batch_.longest() > 1) {
    batch_.padding_rows = tokens;
    return;
  }
  // A padded decode is a rectangle: its padding rows go through attention like the longest member's
  // row, and through the logits, which are most of the work in a small model. Nothing is sampled
  // from them.
  const params::StepSequence longest = *std::ranges::max_element(
      batch_.sequences, {},
      [](const params::StepSequence& member) { return member.first_position; });
  for (uint32_t i = 0; i < tokens; ++i) {
    batch_.logit_rows.push_back(batch_.rows());
    batch_.sampling.push_back({});
    batch_.add_padding(longest);
  }
}

}  // namespace hearth
