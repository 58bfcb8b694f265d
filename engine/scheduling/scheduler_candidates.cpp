// Candidates: alternatives for a request's next token, each computed in a block of its own.
#include <cassert>
#include <utility>

#include "engine/scheduling/scheduler.h"

namespace hearth {

void Scheduler::propose_candidates(RequestId id, std::span<const TokenId> candidates) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  assert(candidates.size() <= sequence->candidates);
  sequence->propose_candidates(candidates);
  trim_blocks(*sequence, false);
}

void Scheduler::take_candidate(RequestId id, std::uint32_t candidate) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  // It may have been preempted since.
  if (sequence->computed() > sequence->committed()) {
    const std::uint32_t block = sequence->committed() / kTokensPerBlock;
    std::swap(sequence->blocks[block], sequence->blocks[block + candidate]);
  }
  sequence->take_candidate(candidate);
  trim_blocks(*sequence, false);
}

// The blocks of all planned candidates but the first begin as copies of the text's last block,
// which is the first one's.
void Scheduler::copy_to_candidates(const Sequence& sequence) {
  const std::uint32_t first = sequence.computed() / kTokensPerBlock;
  if (sequence.computed() % kTokensPerBlock == 0) return;  // nothing to copy
  const BlockId from = sequence.blocks[first];
  for (std::uint32_t i = 1; i < sequence.planned; ++i)
    plan_.copies.push_back({.from = from, .to = sequence.blocks[first + i]});
}

}  // namespace hearth
