// Counts tokens that became final in the histories of their slots, before a step samples.
//
//   for each token of commit c, in order: history[slot] has it ? ++count : append {token, 1}
//
// A full history takes no new tokens. sample_pick does the same for tokens that it samples itself.
// workgroups = [commits, 1, 1]. REQUIRES: no two commits have the same slot.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/history_commit.h"
#include "common/sampling_reduce.glsl"
#include "params/sampling.h"
#include "common/chain_state.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Commits {
  HistoryCommit at[];
};
// Lanes read entries that another lane has written for an earlier token.
layout(buffer_reference, std430, buffer_reference_align = 4) workgroupcoherent buffer SlotHistory {
  TokenCount at[];
};

void count_tokens(HistoryCommit commit) {
  const uint lane = gl_LocalInvocationID.x;
  U32 length_of_slot = U32(params.history_lengths + uint64_t(commit.slot) * 4);
  SlotHistory history =
      SlotHistory(params.history + uint64_t(commit.slot) * params.history_capacity * 8);
  uint length = min(length_of_slot.at[0], params.history_capacity);
  for (uint t = 0; t < commit.count; ++t) {
    const uint token = U32(params.words).at[commit.first + t];
    uint place = length;
    for (uint i = lane; i < length; i += gl_WorkGroupSize.x)
      if (history.at[i].token == token) place = i;
    place = workgroup_min(place);
    const bool is_new = place == length;
    if (is_new && length == params.history_capacity) continue;
    if (lane == 0) history.at[place] = TokenCount(token, is_new ? 1 : history.at[place].count + 1);
    if (is_new) ++length;
    memoryBarrierBuffer();
    barrier();
  }
  if (lane == 0) length_of_slot.at[0] = length;
}

void main() {
  const HistoryCommit commit = Commits(params.commits).at[gl_WorkGroupID.x];
  if (chain_wait_intact() && commit.count > 0) count_tokens(commit);
  chain_done();
}
