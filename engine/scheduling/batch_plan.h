// One step as plain data, from the scheduler to whatever runs it. The vectors keep their capacity
// from step to step, so that planning a decode step allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/ids.h"
#include "params/paged_kv.h"

namespace hearth {

using params::kTokensPerBlock;
// Blocks that hold this many tokens.
template <class T>
constexpr T blocks_for(T tokens) {
  return tokens / kTokensPerBlock + (tokens % kTokensPerBlock != 0 ? 1 : 0);
}
// Most proposed tokens of one sequence, because a row's ancestors are a 32-bit mask on the device.
inline constexpr std::uint32_t kMaxProposed = 32;
// The parent of a proposed token that follows the newest committed one.
inline constexpr std::uint32_t kNoParent = 0xffffffff;

// A sequence's part of a step: tokens at positions [first_position, first_position + tokens).
struct BatchMember {
  RequestId request = 0;
  // The member is the request's shadow (NewRequest::shadow_prompt). It comes after the request's
  // own member and samples in the same steps.
  bool shadow = false;
  std::uint32_t slot = 0;  // below max_sequences; the sequence's own while it runs. The GPU keeps
                           // the id sampled for the sequence there
  std::uint32_t first_position = 0;  // tokens that are in the KV cache already
  std::uint32_t tokens = 0;
  // The last `proposed` tokens are guesses. A member that samples does so after its newest
  // committed token and after each proposed one: at 1 + proposed positions. With `candidates` all
  // tokens are proposed, and there is no newest one.
  std::uint32_t proposed = 0;
  bool samples = false;
  // All but its newest token were in the KV cache before the step. Otherwise this is a prompt
  // chunk; a preempted request that recomputes its generated tokens counts as one, too.
  bool decodes = false;
  // The request wants the log-probabilities of its prompt: those of the tokens that follow the
  // `scored` tokens from tokens[first_scored] on are computed in this step.
  std::uint32_t first_scored = 0, scored = 0;
  // The input at the last position is a pending token: a step in flight samples it, and the GPU
  // reads it from `input_slot`.
  bool input_on_gpu = false;
  std::uint32_t input_slot = 0;  // the slot; for a shadow, that of the request it follows
  // The sequence is not planned again before the host has judged what the step sampled for it.
  bool awaits_host = false;
  // All its tokens are candidates for the one at first_position: each is computed as if it alone
  // followed the tokens before, and its keys and values go into a block of its own. The member's
  // blocks are those before the one of first_position, and then one per candidate.
  bool candidates = false;
  bool tree = false;                          // the proposed tokens have parents
  std::uint32_t first_id = 0;                 // of BatchPlan::ids; `tokens` of them
  std::uint32_t first_parent = 0;             // of BatchPlan::parents, if tree; `proposed` of them
  std::uint32_t first_block = 0, blocks = 0;  // of BatchPlan::block_ids; enough for all its tokens
};

struct BlockMove {
  BlockId from = 0, to = 0;
};

// How many of the first moves within a memory, at most 64, may be made at the same time: none of
// them writes what another reads or writes.
inline std::size_t independent_moves(std::span<const BlockMove> moves) {
  // Compares every move with every other.
  moves = moves.first(std::min<std::size_t>(moves.size(), 64));
  for (std::size_t i = 1; i < moves.size(); ++i)
    for (const BlockMove& before : moves.first(i))
      if (moves[i].from == before.to || moves[i].to == before.from || moves[i].to == before.to)
        return i;
  return moves.size();
}

struct BatchPlan {
  std::uint64_t step = 0;
  std::vector<BatchMember> members;
  std::vector<BlockId> block_ids;      // the members' block tables, one after the other
  std::vector<TokenId> ids;            // the members' input ids; a pending one is 0, a
                                       // proposed one may be unread (unread_token.h)
  std::vector<std::uint32_t> parents;  // of proposed tokens that form trees; see TokenLedger
  std::uint32_t padding_tokens = 0;  // rows to compute in addition to the members' (padded layout)

  // Block moves to make before the step computes, in this order. Within a list no block is written
  // twice; a host block that swap_in reads is not written by swap_out. A device block that swap_out
  // reads may be written by later moves. Copies are made in the order of their list: one may read a
  // block that an earlier one wrote (a fork that starts in the step in which its parent's block is
  // copied), or write one that an earlier one read (a block that a preemption freed).
  // independent_moves() says which may be made together.
  std::vector<BlockMove> swap_out;  // device to host blocks
  std::vector<BlockMove> swap_in;   // host to device blocks
  std::vector<BlockMove> copies;    // within the pool, for copy-on-write and for candidates

  // What planning decided, for the step record.
  struct PrefixHit {
    RequestId request = 0;
    std::uint32_t tokens = 0;  // found in the prefix cache
  };
  // Shadows are not listed here.
  std::vector<RequestId> admitted;             // new ones, and preempted ones that came back
  std::vector<RequestId> preempted_recompute;  // lost their blocks
  std::vector<RequestId> preempted_swap;
  std::vector<PrefixHit> prefix_hits;

  std::uint32_t tokens() const {
    std::uint32_t sum = 0;
    for (const BatchMember& member : members) sum += member.tokens;
    return sum;
  }
  bool empty() const { return members.empty(); }
  // Empties everything, without giving memory back.
  void clear() {
    members.clear();
    block_ids.clear();
    ids.clear();
    parents.clear();
    padding_tokens = 0;
    swap_out.clear();
    swap_in.clear();
    copies.clear();
    admitted.clear();
    preempted_recompute.clear();
    preempted_swap.clear();
    prefix_hits.clear();
  }
};

}  // namespace hearth
