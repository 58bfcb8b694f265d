// A request as the scheduler sees it: the ledger of its tokens, and where they are in the KV cache.
// Plain data, of the scheduler alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/token_ledger.h"

namespace hearth {

enum class SequenceState : std::uint8_t {
  kWaiting,  // in the queue, without blocks: new, or preempted to recompute
  kSwapped,  // in the queue, its blocks in host memory
  kRunning,  // has a slot and blocks
  kEnding,   // its last token has been planned and its blocks are given back; waits for finish()
};

// The id of a request's shadow is the request's with this bit.
inline constexpr RequestId kShadowBit = RequestId{1} << 63;

struct Sequence : TokenLedger {
  Sequence(RequestId request, TokenLedger ledger) : TokenLedger(std::move(ledger)), id(request) {
    blocks.reserve(max_blocks());
  }

  RequestId id;
  std::int32_t priority = 0;
  std::uint64_t arrival = 0;                 // add() calls before this one
  std::uint64_t arrival_step = 0;            // steps planned before
  std::chrono::nanoseconds arrival_time{0};  // from set_time()
  RequestId parent = 0;                      // the request it is a fork of, if fork_tokens > 0
  std::uint32_t fork_tokens = 0;             // that it has in common with the parent
  bool with_host = false;        // every sampled token is judged by the host before the next step
  bool compute_all = false;      // see NewRequest
  std::uint32_t candidates = 0;  // see NewRequest
  // A group: sequences of one request that run, wait and are preempted together: forks of each
  // other, or a request and its shadow.
  RequestId group = 0;            // its first member; 0: the sequence is alone
  std::uint32_t group_seats = 1;  // members that the group may have
  std::uint32_t seats = 1;        // slots it takes up: its own, and those kept for its forks
  // A request with a shadow is a group of these two. The shadow has another prompt, and for the
  // rest the tokens of the sequence that it follows; both sample in the same steps.
  Sequence* shadow = nullptr;
  Sequence* followed = nullptr;  // by this one, a shadow
  // Of a request that wants its prompt's log-probabilities: planned steps have scored what follows
  // the first `scored` tokens; those from there up to `score_end` must be computed, not shared.
  std::uint32_t scored = 0, score_end = 0;
  std::uint32_t score_rows = 0;  // logit rows beyond its own that the step being planned has for it

  SequenceState state = SequenceState::kWaiting;
  bool preempted = false;  // at least once
  std::uint32_t preemptions = 0;
  std::uint32_t slot = 0;            // while running
  std::vector<BlockId> blocks;       // while running
  std::vector<BlockId> host_blocks;  // while swapped
  std::uint32_t remembered = 0;      // leading blocks that were offered to the prefix cache
  std::uint64_t batch = 0;           // with request admission: the batch it belongs to; 0: none
  std::uint64_t admitted_step = 0;   // the last time
  std::uint64_t last_step = 0;       // that it was a member of
  std::uint64_t sampled_step = 0;    // the last step that sampled for it
  std::uint32_t planned = 0;         // tokens in the step being planned

  // Whether it takes a place in the queue of new requests while it waits; a shadow takes none.
  bool is_new() const { return !preempted && followed == nullptr; }
  // Whether a step may compute tokens of it now. A sequence that the host judges has no pending
  // tokens, except for one when it has just become such a sequence.
  bool ready() const { return !awaiting() && !(with_host && pending()) && !full(); }
  // More than the newest committed token is missing from the cache, or the prompt's last one: what
  // counts as prompt work, also when a preempted request recomputes what it generated.
  bool in_prompt() const { return in_prompt(computed()); }
  bool in_prompt(std::uint32_t if_computed) const {
    return if_computed < prompt_tokens() || committed() > if_computed + 1;
  }
  bool scoring() const { return scored < score_end; }
  // The most leading tokens that may be taken from the prefix cache: the newest token is always
  // computed, because the request waits for its logits.
  std::uint32_t shareable() const {
    if (compute_all) return 0;
    return scoring() ? scored : committed() - 1;
  }
  // The proposals are candidates for the next token. A step computes either text or candidates,
  // because a candidate's block begins as a copy of the text's last one.
  bool has_candidates() const { return candidates > 0 && proposed() > 0; }
  // Whether the next step computes candidates: all text before them is in the cache.
  bool at_candidates() const { return has_candidates() && computed() == committed(); }
  // The most tokens that the next step may compute.
  std::uint32_t next_work() const {
    return has_candidates() && !at_candidates() ? committed() - computed() : work();
  }
  // Blocks that are needed once this many more tokens are computed.
  std::uint32_t blocks_after(std::uint32_t tokens) const {
    return at_candidates() ? computed() / kTokensPerBlock + tokens
                           : blocks_for(computed() + tokens);
  }
  // Whether candidates have been computed that are not judged yet; each has a block of its own.
  bool holds_candidates() const { return has_candidates() && computed() > committed(); }
  // Blocks with something in them, and the filled places of all its blocks and of one.
  std::uint32_t filled_blocks() const {
    return holds_candidates() ? committed() / kTokensPerBlock + (computed() - committed())
                              : blocks_for(computed());
  }
  std::uint64_t filled_places() const {
    if (!holds_candidates()) return computed();
    const std::uint32_t whole = committed() / kTokensPerBlock * kTokensPerBlock;
    return whole + std::uint64_t{computed() - committed()} * (committed() % kTokensPerBlock + 1);
  }
  std::uint32_t filled_places(std::uint32_t block) const {
    if (block >= filled_blocks()) return 0;
    if (holds_candidates() && block >= committed() / kTokensPerBlock)
      return committed() % kTokensPerBlock + 1;
    return std::min(computed() - block * kTokensPerBlock, std::uint32_t{kTokensPerBlock});
  }
  // Blocks of candidates beyond the text's own.
  std::uint32_t more_candidate_blocks() const { return candidates > 0 ? candidates - 1 : 0; }

  // The last token sampled is never computed.
  std::uint32_t max_blocks() const {
    return blocks_for(max_tokens() - 1) + more_candidate_blocks();
  }
  // Of its whole group, if nothing is shared.
  std::uint32_t max_group_blocks() const {
    if (const Sequence* other = shadow != nullptr ? shadow : followed)
      return max_blocks() + other->max_blocks();
    return group_seats * max_blocks();
  }
  // Whether the step being planned computes all that it has, and samples.
  bool planned_to_sample() const { return planned > 0 && computed() + planned >= committed(); }
  // To compute everything there is and to write one token more.
  std::uint32_t blocks_to_start() const {
    const std::uint32_t tokens = candidates > 0 ? committed() : length();
    return blocks_for(std::min(tokens + 1, max_tokens() - 1)) + more_candidate_blocks();
  }
};

// The lower the rank, the better a running request is protected from preemption. Each level of
// priority is worth kStepsPerPriority steps of waiting, so that everyone comes to the front in the
// end whatever comes later.
inline constexpr std::int64_t kStepsPerPriority = 64;
struct Rank {
  std::int64_t key = 0;
  std::uint64_t arrival = 0;
  auto operator<=>(const Rank&) const = default;
};
inline Rank protection_rank(const Sequence& sequence) {
  return {static_cast<std::int64_t>(sequence.arrival_step) - kStepsPerPriority * sequence.priority,
          sequence.arrival};
}
inline bool is_better_protected(const Sequence* a, const Sequence* b) {
  return protection_rank(*a) < protection_rank(*b);
}

}  // namespace hearth
