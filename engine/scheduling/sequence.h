// A request as the scheduler sees it: which tokens it knows, how many of them are in the KV cache,
// and where. Plain data, of the scheduler alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/prefix_cache.h"

namespace hearth {

// Blocks that hold this many tokens.
constexpr std::uint32_t blocks_for(std::uint32_t tokens) {
  return (tokens + kTokensPerBlock - 1) / kTokensPerBlock;
}

enum class SequenceState : std::uint8_t {
  kWaiting,  // in the queue, without blocks: new, or preempted to recompute
  kSwapped,  // in the queue, its blocks in host memory
  kRunning,  // has a slot and blocks
  kEnding,   // its last token has been planned and its blocks are given back; waits for finish()
};

struct Sequence {
  RequestId id = 0;
  std::vector<TokenId> tokens;    // prompt and what was sampled, as far as it was told
  std::vector<BlockHash> hashes;  // of the full blocks of `tokens`
  BlockHash root;                 // what the first of them is chained to
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_tokens = 0;  // prompt and generated
  // Tokens that exist, including those sampled by planned steps but not told yet: at most one of
  // those when plan() is called. computed < known, until the last token has been planned.
  std::uint32_t known = 0;
  std::uint32_t computed = 0;  // in the cache, once the planned steps have run

  std::int32_t priority = 0;
  std::uint64_t arrival = 0;       // add() calls before this one
  std::uint64_t arrival_step = 0;  // steps planned before
  RequestId parent = 0;            // the request it is a fork of, if fork_tokens > 0
  std::uint32_t fork_tokens = 0;   // that it has in common with the parent

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
  std::uint32_t planned = 0;         // tokens in the step being planned

  bool pending() const { return known > tokens.size(); }
  std::uint32_t work() const { return known - computed; }
  // More than the newest token is missing from the cache, or the prompt's last one: what counts as
  // prompt work, also when a preempted request recomputes what it generated.
  bool in_prompt() const { return in_prompt(computed); }
  bool in_prompt(std::uint32_t if_computed) const {
    return if_computed < prompt_tokens || known - if_computed > 1;
  }
  // The last token sampled is never computed.
  std::uint32_t max_blocks() const { return blocks_for(max_tokens - 1); }
  // To compute everything known and to write one token more.
  std::uint32_t blocks_to_start() const { return blocks_for(std::min(known + 1, max_tokens - 1)); }

  void extend_hashes() {
    while ((hashes.size() + 1) * kTokensPerBlock <= tokens.size()) {
      const TokenId* first = tokens.data() + hashes.size() * kTokensPerBlock;
      hashes.push_back(
          chain_hash(hashes.empty() ? root : hashes.back(),
                     std::span<const TokenId, kTokensPerBlock>(first, kTokensPerBlock)));
    }
  }
};

// Who is more worth keeping: a lower rank. Each step of priority is worth kStepsPerPriority steps
// of waiting, so that everyone comes to the front in the end whatever comes later.
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

}  // namespace hearth
