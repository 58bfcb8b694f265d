// The scheduler's invariants, which hold after every call. For tests and debug builds, because the
// check visits everything.
#include <algorithm>
#include <unordered_set>

#include "engine/scheduling/scheduler.h"
#include "engine/scheduling/unread_token.h"

namespace hearth {
namespace {

std::string about(RequestId request, const std::string& what) {
  return "request " + std::to_string(request) + ' ' + what;
}

bool writes_twice(const std::vector<BlockMove>& moves) {
  std::unordered_set<BlockId> written;
  return !std::all_of(moves.begin(), moves.end(),
                      [&](const BlockMove& move) { return written.insert(move.to).second; });
}

std::optional<std::string> check_ledger(const Sequence& sequence) {
  const std::uint32_t length = sequence.length();
  if (length > sequence.max_tokens()) return "has more tokens than it may";
  if (sequence.tokens().size() < sequence.proposed() || sequence.known() > sequence.committed())
    return "knows tokens that it does not have";
  if (sequence.committed() > sequence.known() + 2) return "has more than two pending tokens";
  if (sequence.pending() && (sequence.proposed() > 0 || sequence.awaiting()))
    return "has a pending token and waits for the host";
  if (sequence.awaiting() ? sequence.computed() > length : sequence.computed() >= length)
    return "has computed tokens that it does not have";
  if (!sequence.awaiting() && sequence.computed() >= sequence.committed() &&
      !sequence.at_candidates())
    return "has computed proposals that no step judged";
  if (!sequence.parents().empty() && sequence.parents().size() != sequence.proposed())
    return "has proposals without a place in their tree";
  if (std::ranges::any_of(sequence.tokens().first(sequence.known()), is_unread))
    return "has a committed token whose id the host has not read";
  // Hashes cover known committed tokens only, and nothing else enters the prefix cache.
  if (sequence.hashes().size() != sequence.known() / kTokensPerBlock)
    return "has not hashed its tokens, or those that are not final";
  if (sequence.remembered * kTokensPerBlock > std::min(sequence.known(), sequence.computed()))
    return "offered the prefix cache what is not final or not computed";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Scheduler::check_integrity() const {
  if (auto problem = blocks_.check_integrity()) return problem;
  if (auto problem = check_sequences()) return problem;
  return check_plan();
}

std::optional<std::string> Scheduler::check_sequences() const {
  std::vector<std::uint32_t> references(blocks_.total(), 0);
  std::vector<bool> slots(slot_count_, false);
  std::vector<std::uint32_t> host(swap_.total(), 0);
  std::uint32_t waiting = 0, swapped = 0, running = 0, new_waiting = 0, live = 0;
  for (BlockId block : swap_.free_blocks()) ++host[block];

  for (const auto& [id, owned] : sequences_) {
    const Sequence& sequence = *owned;
    if (sequence.batch != 0 && sequence.batch == batch_) ++live;
    if (auto problem = check_ledger(sequence)) return about(id, *problem);
    if (sequence.state != SequenceState::kEnding && sequence.max_blocks() > limits_.pool_blocks)
      return about(id, "does not fit the pool");
    if (const Sequence* shadow = sequence.shadow)
      if (shadow->followed != &sequence ||
          shadow->length() - shadow->prompt_tokens() !=
              sequence.length() - sequence.prompt_tokens() ||
          shadow->pending() != sequence.pending() || shadow->awaiting() != sequence.awaiting())
        return about(id, "and its shadow have not the same tokens");
    for (BlockId block : sequence.blocks) ++references[block];
    for (BlockId block : sequence.host_blocks) ++host[block];
    switch (sequence.state) {
      case SequenceState::kRunning:
        ++running;
        if (sequence.slot >= slot_count_ || slots[sequence.slot])
          return about(id, "has no slot of its own");
        slots[sequence.slot] = true;
        if (sequence.blocks.size() < sequence.filled_blocks())
          return about(id, "has too few blocks");
        if (sequence.blocks.size() > sequence.max_blocks()) return about(id, "has too many blocks");
        if (!sequence.host_blocks.empty()) return about(id, "runs and has host blocks");
        break;
      case SequenceState::kWaiting:
        ++waiting;
        new_waiting += sequence.is_new() ? 1 : 0;
        if (!sequence.blocks.empty() || !sequence.host_blocks.empty() || sequence.computed() != 0)
          return about(id, "waits and has blocks");
        break;
      case SequenceState::kSwapped:
        ++swapped;
        if (!sequence.blocks.empty() ||
            sequence.host_blocks.size() != blocks_for(sequence.computed()))
          return about(id, "is swapped out with the wrong blocks");
        break;
      case SequenceState::kEnding:
        if (!sequence.blocks.empty()) return about(id, "is ending and has blocks");
        break;
    }
  }
  for (std::size_t first = 0; first < running_.size(); first = group_end(first)) {
    const Sequence& member = *running_[first];
    for (const auto& [id, other] : sequences_)
      if (member.group != 0 && other->group == member.group &&
          (other->state == SequenceState::kWaiting || other->state == SequenceState::kSwapped))
        return about(id, "waits while others of its group run");
  }
  if (taken_seats() > slot_count_) return "more slots are kept for forks than there are";
  for (BlockId block = 0; block < blocks_.total(); ++block)
    if (references[block] != blocks_.references(block))
      return "block " + std::to_string(block) + " has " +
             std::to_string(blocks_.references(block)) + " references, but the sequences hold " +
             std::to_string(references[block]);
  for (BlockId block = 0; block < swap_.total(); ++block)
    if (host[block] != 1) return "host block " + std::to_string(block) + " is lost or held twice";
  if (blocks_.pool() != limits_.pool_blocks) return "the pool is not as large as its limit says";
  if (slots != slots_) return "slots are taken by no sequence, or by two";
  if (running != running_.size()) return "a running request is not listed";
  if (waiting + swapped != queue_.size() || swapped != swapped_ || new_waiting != new_waiting_)
    return "waiting requests are miscounted";
  if (!queue_.sorted()) return "the queue is out of order";
  if (!std::is_sorted(running_.begin(), running_.end(), is_better_protected))
    return "running requests are out of order";
  if (live != batch_live_) return "members of the batch are miscounted";
  if (policy_.admission == Admission::kRequest && running > batch_live_)
    return "requests run that are not in the batch";
  return std::nullopt;
}

std::optional<std::string> Scheduler::check_plan() const {
  if (writes_twice(plan_.swap_out)) return "swap_out writes a block twice";
  if (writes_twice(plan_.swap_in)) return "swap_in writes a block twice";
  if (writes_twice(plan_.copies)) return "copies write a block twice";
  for (const BlockMove& in : plan_.swap_in) {
    for (const BlockMove& out : plan_.swap_out)
      if (in.from == out.to) return "swap_out overwrites what swap_in reads";
    for (const BlockMove& copy : plan_.copies)
      if (in.to == copy.to || in.to == copy.from)
        return "swap_in writes a block that a copy reads or writes";
  }
  std::unordered_set<std::uint32_t> slots;
  std::unordered_set<BlockId> written;
  std::uint64_t rows = plan_.padding_tokens, more_logit_rows = 0;
  for (std::size_t i = 0; i < plan_.members.size(); ++i) {
    const BatchMember& member = plan_.members[i];
    const Sequence* const owner = find(member.request);
    if (owner != nullptr && owner->shadow != nullptr && !member.shadow && member.samples) {
      const BatchMember* const next = i + 1 < plan_.members.size() ? &member + 1 : nullptr;
      if (next == nullptr || !next->shadow || next->request != member.request || !next->samples)
        return about(member.request, "samples without its shadow");
    }
    rows += member.tokens;
    if (member.tokens == 0) return about(member.request, "is a member without tokens");
    if (!slots.insert(member.slot).second) return about(member.request, "shares its slot");
    if (member.slot >= slot_count_) return about(member.request, "has a slot beyond the last");
    if (member.proposed >= member.tokens + (member.candidates ? 1 : 0) ||
        (member.proposed > 0 && !member.samples))
      return about(member.request, "has proposals that the step does not judge");
    if (member.proposed > 0 && !member.awaits_host)
      return about(member.request, "runs ahead of its proposals");
    if (member.first_id + member.tokens > plan_.ids.size() ||
        (member.tree && member.first_parent + member.proposed > plan_.parents.size()))
      return about(member.request, "has no ids or parents");
    if (member.first_scored + member.scored > member.tokens)
      return about(member.request, "scores tokens that it does not compute");
    if (member.candidates && member.proposed != member.tokens)
      return about(member.request, "computes text together with candidates");
    more_logit_rows += member.proposed + member.scored - (member.candidates ? 1 : 0);
    if (member.scored > 0 && !member.samples) --more_logit_rows;
    if (member.input_on_gpu && !member.samples)
      return about(member.request, "has a pending token that is not its newest");
    const std::uint32_t blocks = member.candidates
                                     ? member.first_position / kTokensPerBlock + member.tokens
                                     : blocks_for(member.first_position + member.tokens);
    if (member.first_block + member.blocks > plan_.block_ids.size() || member.blocks != blocks)
      return about(member.request, "has the wrong number of blocks");
    for (std::uint32_t k = member.first_position / kTokensPerBlock; k < member.blocks; ++k)
      if (!written.insert(plan_.block_ids[member.first_block + k]).second)
        return about(member.request, "writes to a block that another one writes to");
  }
  // Nothing that the step reads may change during it: a written block is in one table only.
  std::unordered_set<BlockId> once;
  for (BlockId block : plan_.block_ids)
    if (written.contains(block) && !once.insert(block).second)
      return "block " + std::to_string(block) + " is written by one member and read by another";
  if (more_logit_rows > limits_.max_proposed) return "the step has more logit rows than it may";
  if (rows > plan_limit_) return "the step computes more rows than it may";
  return std::nullopt;
}

}  // namespace hearth
