// Who of the waiting comes in, and with what: nothing, the blocks of a cached beginning, those of
// the request it is a fork of, or its own from host memory. Nobody is put out for someone who
// waits.
#include <algorithm>
#include <cassert>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

// With blocks on demand, a block for every so many running requests is left to them when another
// one is admitted: it would be the first to be put out again.
constexpr std::size_t kRunningPerHeadroomBlock = 4;

}  // namespace

// In the order of the queue, up to the first that does not fit: nobody is overtaken because he is
// large. Only those that cannot run yet whatever room there is are passed over.
void Scheduler::admit(Phase phase) {
  const bool by_request = policy_.admission == Admission::kRequest;
  const bool padded = policy_.layout == Layout::kPadded;
  const bool forming = by_request && batch_live_ == 0;
  if (short_of_blocks_ || queue_.empty()) return;
  if (by_request && !forming && batch_live_ == running_.size()) return;

  const std::size_t most = std::min(limits_.max_sequences, limits_.max_step_tokens);
  std::uint32_t left = limits_.max_step_tokens;  // rows
  for (const Sequence* sequence : running_)
    left -= padded ? (sequence->planned > 0 ? 1 : 0) : sequence->planned;
  std::uint32_t promised = promised_blocks();

  for (std::uint32_t index = 0; index < queue_.size() && running_.size() < most;) {
    Sequence& sequence = queue_[index];
    // A batch of request admission is made up at once, whatever the first step takes of it.
    if (left == 0 && !by_request) break;
    if (!admissible(sequence) || (by_request && !forming && sequence.batch != batch_)) {
      ++index;
      continue;
    }
    const Start from = find_start(sequence);
    const bool prompt = sequence.in_prompt(from.computed);
    if (phase == Phase::kDecodes && prompt) break;
    if (phase == Phase::kPrompts && !prompt && !forming) break;
    const std::size_t headroom =
        policy_.kv == KvAllocation::kOnDemand ? running_.size() / kRunningPerHeadroomBlock : 0;
    if (std::size_t{from.new_blocks} + promised + headroom > blocks_.available()) break;

    queue_.erase(index);
    if (forming) {
      if (batch_live_ == 0) ++batch_;
      sequence.batch = batch_;
      ++batch_live_;
      ++batch_rows_;
    }
    start(sequence, from);
    if (phase != Phase::kPrompts || prompt) {
      // In a padded step the share of each is known only when all are there: see even_out().
      sequence.planned = padded ? std::min(left, 1u) : chunk_limit(sequence, left);
      left -= sequence.planned;
      if (!padded && sequence.planned > 0) {
        [[maybe_unused]] const bool grown = grow_for_step(sequence);
        assert(grown && "the blocks were counted before");
      }
    }
    const std::uint32_t held = static_cast<std::uint32_t>(sequence.blocks.size());
    promised += from.need_blocks > held ? from.need_blocks - held : 0;
    // The copy of a shared block is made by even_out().
    if (padded && needs_copy(sequence)) ++promised;
  }
}

// Whether it could run at all now.
bool Scheduler::admissible(const Sequence& sequence) const {
  if (sequence.pending()) return false;
  if (sequence.fork_tokens == 0 || policy_.admission == Admission::kRequest) return true;
  // A fork waits until its parent has computed what they share. It does not wait for a parent that
  // was put out, and in a closed batch there is no later.
  const Sequence* parent = find(sequence.parent);
  if (parent == nullptr || sequence.state == SequenceState::kSwapped) return true;
  if (parent->state == SequenceState::kRunning) return fork_parent(sequence) != nullptr;
  return parent->preempted || parent->state == SequenceState::kEnding;
}

// The parent, if its blocks can be shared by this step: computed by earlier ones.
const Sequence* Scheduler::fork_parent(const Sequence& sequence) const {
  if (sequence.fork_tokens == 0 || policy_.admission == Admission::kRequest) return nullptr;
  const Sequence* parent = find(sequence.parent);
  const bool ready = parent != nullptr && parent->state == SequenceState::kRunning &&
                     parent->admitted_step < plan_.step &&
                     parent->computed >= std::min(sequence.fork_tokens, sequence.known - 1);
  return ready ? parent : nullptr;
}

// At least the newest token is always left to compute: its logits are what the request waits for.
Scheduler::Start Scheduler::find_start(const Sequence& sequence) const {
  Start start{.computed = sequence.computed,
              .need_blocks = policy_.kv == KvAllocation::kReserve ? sequence.max_blocks()
                                                                  : sequence.blocks_to_start()};
  start.new_blocks = start.need_blocks;
  if (sequence.state == SequenceState::kSwapped) return start;

  std::uint32_t held_by_others = 0;
  if (policy_.prefix_cache) {
    const std::uint32_t most = (sequence.known - 1) / kTokensPerBlock;
    while (start.hit_blocks < most) {
      const std::optional<BlockId> block = blocks_.find(sequence.hashes[start.hit_blocks]);
      if (!block) break;
      if (blocks_.references(*block) > 0) ++held_by_others;
      ++start.hit_blocks;
    }
  }
  start.computed = start.hit_blocks * kTokensPerBlock;
  const Sequence* parent = fork_parent(sequence);
  const std::uint32_t shared = std::min(sequence.fork_tokens, sequence.known - 1);
  if (parent != nullptr && shared > start.computed) {
    // A block that is shared in part is copied when it is written to.
    start.parent = parent;
    start.computed = shared;
    start.hit_blocks = 0;
    held_by_others = shared / kTokensPerBlock;
  }
  start.new_blocks -= held_by_others;
  return start;
}

void Scheduler::start(Sequence& sequence, const Start& start) {
  if (sequence.state == SequenceState::kSwapped) {
    swap_in(sequence);
  } else {
    if (!sequence.preempted) --new_waiting_;
    sequence.computed = start.computed;
    sequence.remembered = start.hit_blocks;
    for (std::uint32_t i = 0; i < blocks_for(start.computed); ++i) {
      const BlockId block =
          start.parent != nullptr ? start.parent->blocks[i] : *blocks_.find(sequence.hashes[i]);
      blocks_.share(block);
      sequence.blocks.push_back(block);
    }
    // What comes back looks for itself, and finds itself; that says nothing of shared prefixes. What
    // shares the memory of another request does not look.
    if (policy_.prefix_cache && !sequence.preempted && start.parent == nullptr)
      totals_.prefix_query_tokens += sequence.known;
    if (start.hit_blocks > 0) {
      if (!sequence.preempted) totals_.prefix_hit_tokens += start.computed;
      plan_.prefix_hits.push_back({.request = sequence.id, .tokens = start.computed});
    }
    if (start.parent != nullptr) {
      ++totals_.forks;
      plan_.forks.push_back(
          {.request = sequence.id, .parent = start.parent->id, .tokens = start.computed});
    }
  }
  if (policy_.kv == KvAllocation::kReserve)
    while (sequence.blocks.size() < start.need_blocks)
      sequence.blocks.push_back(blocks_.allocate(sequence.id));

  const auto slot = std::find(slots_.begin(), slots_.end(), false);
  assert(slot != slots_.end());
  *slot = true;
  sequence.slot = static_cast<std::uint32_t>(slot - slots_.begin());
  sequence.state = SequenceState::kRunning;
  sequence.admitted_step = plan_.step;
  plan_.admitted.push_back(sequence.id);
  list_as_running(sequence);
}

void Scheduler::swap_in(Sequence& sequence) {
  for (BlockId host : sequence.host_blocks) {
    const BlockId block = blocks_.allocate(sequence.id);
    sequence.blocks.push_back(block);
    plan_.swap_in.push_back({.from = host, .to = block});
    // Safe to reuse: whoever is put out by the same plan was put out before.
    swap_.release(host);
  }
  sequence.host_blocks.clear();
  --swapped_;
}

// Blocks that the prompts of running requests have still to come to.
std::uint32_t Scheduler::promised_blocks() const {
  std::uint32_t promised = 0;
  for (const Sequence* sequence : running_) {
    if (!sequence->in_prompt() && sequence->admitted_step != plan_.step) continue;
    const std::uint32_t held = static_cast<std::uint32_t>(sequence->blocks.size());
    const std::uint32_t need = sequence->blocks_to_start();
    promised += need > held ? need - held : 0;
  }
  return promised;
}

}  // namespace hearth
