#include "engine/drafter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/unread_token.h"

namespace hearth {

bool can_verify_unread(const DrafterOptions& options, bool ids_needed) {
  // A token that the host would find unlikely or unknown ends a draft, which it must see first.
  const bool whole = options.min_probability == 0 && options.draft_vocabulary != 0 &&
                     options.draft_vocabulary <= options.vocabulary;
  return options.shares_places && options.branches <= 1 && whole && !ids_needed;
}

Drafter::Drafter(StepExecutor& executor, const DrafterOptions& options)
    : executor_(executor), options_(options), sequences_(options.slots), free_(options.blocks) {
  std::iota(free_.rbegin(), free_.rend(), BlockId{0});
  batch_.reserve(options.step_rows, options.slots, options.blocks);
}

Status Drafter::start(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    job.unread.clear();
    job.proposal.clear();
  }
  if (Status status = submit_levels(jobs); !status.ok())
    return forget_after_error(jobs, std::move(status));
  for (const Active& active : active_)
    for (uint32_t level = 0; level < active.levels; ++level)
      jobs[active.job].unread.push_back(unread_token(place(active.slot, level)));
  return {};
}

Status Drafter::collect(std::span<DraftJob> jobs) {
  while (read_ < submitted_)
    if (Status status = read_level(jobs); !status.ok())
      return forget_after_error(jobs, std::move(status));
  keep_computed(jobs);
  add_branches(jobs);
  return {};
}

// One level after the other, each submitted before the last one is read: the device reads the token
// that it sampled.
Status Drafter::submit_levels(std::span<DraftJob> jobs) {
  ++calls_;
  submitted_ = read_ = 0;
  add_first_level(jobs);
  work_ = {.levels = 0, .first_rows = batch_.rows()};
  bool more = !batch_.sequences.empty();
  while (more) {
    HEARTH_ASSIGN(tickets_[submitted_ % tickets_.size()], executor_.submit(batch_));
    if (!members_[submitted_ % members_.size()].empty()) ++work_.levels;
    ++submitted_;
    if (!continues(submitted_)) break;
    if (submitted_ - read_ == StepExecutor::kStepsInFlight) HEARTH_TRY(read_level(jobs));
    more = add_next_level(jobs, submitted_, members_[submitted_ % members_.size()]);
  }
  return {};
}

bool Drafter::continues(uint32_t level) const {
  return std::ranges::any_of(
      active_, [&](const Active& active) { return !active.ended && active.length > level; });
}

// The oldest level in flight.
Status Drafter::read_level(std::span<DraftJob> jobs) {
  HEARTH_ASSIGN(const StepOutcome outcome, executor_.wait(tickets_[read_ % tickets_.size()]));
  read(jobs, outcome, members_[read_ % members_.size()]);
  ++read_;
  return {};
}

Status Drafter::forget_after_error(std::span<DraftJob> jobs, Status status) {
  for (DraftJob& job : jobs) job.proposal.clear();
  for (Sequence& sequence : sequences_)
    if (sequence.taken) forget(sequence);
  submitted_ = read_ = 0;
  return status;
}

// Level i computed the token that level i - 1 sampled.
void Drafter::keep_computed(std::span<const DraftJob> jobs) {
  for (const Active& active : active_) {
    const std::vector<TokenId>& drafted = jobs[active.job].proposal.tokens;
    std::vector<TokenId>& tokens = sequences_[active.slot].tokens;
    const size_t computed = std::min<size_t>(drafted.size(), active.levels - 1);
    tokens.insert(tokens.end(), drafted.begin(),
                  drafted.begin() + static_cast<std::ptrdiff_t>(computed));
  }
}

// After the chains, whose tokens are then stored where they belong if they are accepted.
void Drafter::add_branches(std::span<DraftJob> jobs) {
  for (const Branch& branch : branches_) {
    DraftJob& job = jobs[branch.job];
    if (job.proposal.size() < job.most) job.proposal.add(branch.token, branch.parent);
  }
  for (DraftJob& job : jobs) job.proposal.simplify();
}

// Computes what the draft model has not seen of each request, the shortest first, as far as a step
// goes.
void Drafter::add_first_level(std::span<DraftJob> jobs) {
  batch_.clear();
  active_.clear();
  branches_.clear();
  members_[0].clear();
  const auto missing = [&](size_t job) {
    const auto place = slots_.find(jobs[job].request);
    const size_t have = place == slots_.end() ? 0 : sequences_[place->second].tokens.size();
    return jobs[job].tokens.size() - std::min(have, jobs[job].tokens.size());
  };
  order_.resize(jobs.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, {}, missing);
  for (const size_t index : order_) {
    const DraftJob& job = jobs[index];
    const uint32_t rows_left = options_.step_rows - static_cast<uint32_t>(batch_.ids.size());
    if (rows_left == 0) break;
    if (job.tokens.size() >= options_.context) continue;
    const uint32_t slot = find_slot(job);
    Sequence& sequence = sequences_[slot];
    const auto first = static_cast<uint32_t>(sequence.tokens.size());
    const auto end = static_cast<uint32_t>(job.tokens.size());
    const uint32_t rows = std::min(end - first, rows_left);
    const bool drafts = first + rows == end;
    const uint32_t length = std::min({job.length, options_.context - end + 1, kMaxProposed});
    if (!grow(sequence, first + rows + (drafts ? length - 1 : 0))) continue;
    batch_.add_sequence(first, job.tokens.subspan(first, rows), sequence.blocks);
    sequence.tokens.insert(sequence.tokens.end(), job.tokens.begin() + first,
                           job.tokens.begin() + first + rows);
    if (!drafts) continue;
    sample_last_row(job, slot, 0);
    members_[0].push_back(active_.size());
    active_.push_back({.job = index, .slot = slot, .length = length, .levels = 1});
  }
}

bool Drafter::add_next_level(std::span<const DraftJob> jobs, uint32_t level,
                             std::vector<size_t>& members) {
  batch_.clear();
  members.clear();
  for (size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    if (active.ended || active.length <= level) continue;
    const DraftJob& job = jobs[active.job];
    const std::array<uint32_t, 1> id{unread_token(place(active.slot, level - 1))};
    batch_.add_sequence(static_cast<uint32_t>(job.tokens.size()) + level - 1, id,
                        sequences_[active.slot].blocks);
    sample_last_row(job, active.slot, level);
    ++active.levels;
    members.push_back(i);
  }
  return !members.empty();
}

// The slot's history and biases are the other model's, so the draft does without.
void Drafter::sample_last_row(const DraftJob& job, uint32_t slot, uint32_t level) {
  params::SamplingRow row = job.sampling;
  // Such a row only looks greedy to the kernel that does not know its samplers; the draft has the
  // temperature and the filters that it knows.
  if (has_stages(row)) row.flags &= ~params::kSamplingGreedy;
  row.flags &= params::kSamplingActive | params::kSamplingGreedy;
  row.id_index = place(slot, level);
  row.counter += level;
  row.bias_offset = slot * StepExecutor::kMaxBiases;
  row.bias_count = 0;
  row.history_slot = params::kNoHistory;
  row.path = row.followers = 0;
  row.top_logprobs = options_.branches > 1 ? options_.branches : 0;
  batch_.sample(batch_.rows() - 1, row);
}

void Drafter::read(std::span<DraftJob> jobs, const StepOutcome& outcome,
                   std::span<const size_t> members) {
  const auto fits = [&](TokenId id) {
    return options_.vocabulary == 0 || id < options_.vocabulary;
  };
  for (size_t row = 0; row < members.size(); ++row) {
    Active& active = active_[members[row]];
    DraftJob& job = jobs[active.job];
    const params::SamplingResult& sampled = outcome.sampled[row];
    if (active.ended || job.proposal.size() >= job.most || !fits(sampled.id) ||
        !(std::exp(sampled.logprob) >= options_.min_probability)) {
      active.ended = true;
      continue;
    }
    const uint32_t before = job.proposal.empty() ? kNoParent : job.proposal.size() - 1;
    job.proposal.add(sampled.id, before);
    if (options_.branches <= 1 || outcome.top.empty()) continue;
    uint32_t others = 0;
    for (const params::TokenLogprob& other :
         outcome.top.subspan(row * params::kMaxTopLogprobs, options_.branches)) {
      if (other.id == params::kNoToken || other.id == sampled.id || !fits(other.id)) continue;
      if (++others == options_.branches) break;
      branches_.push_back({.job = active.job, .token = other.id, .parent = before});
    }
  }
}

// The request's slot, with the tokens that are still right, and at least one to compute.
uint32_t Drafter::find_slot(const DraftJob& job) {
  const auto place = slots_.find(job.request);
  uint32_t slot = 0;
  if (place != slots_.end()) {
    slot = place->second;
  } else {
    const auto unused = std::ranges::find(sequences_, false, &Sequence::taken);
    Sequence& sequence = unused != sequences_.end() ? *unused : *oldest();
    if (sequence.taken) forget(sequence);
    slot = static_cast<uint32_t>(&sequence - sequences_.data());
    sequence.taken = true;
    sequence.request = job.request;
    slots_.emplace(job.request, slot);
  }
  Sequence& sequence = sequences_[slot];
  sequence.last_use = calls_;
  const size_t most = std::min(sequence.tokens.size(), job.tokens.size() - 1);
  size_t same = 0;
  while (same < most && sequence.tokens[same] == job.tokens[same]) ++same;
  sequence.tokens.resize(same);
  return slot;
}

bool Drafter::grow(Sequence& sequence, size_t tokens) {
  const size_t wanted = blocks_for(tokens);
  while (sequence.blocks.size() < wanted) {
    if (free_.empty()) {
      Sequence* const other = oldest();
      if (other == nullptr) return false;
      forget(*other);
      continue;
    }
    sequence.blocks.push_back(free_.back());
    free_.pop_back();
  }
  return true;
}

// The sequence that has gone longest without a draft and is not in this call; null if all are.
Drafter::Sequence* Drafter::oldest() {
  Sequence* found = nullptr;
  for (Sequence& sequence : sequences_)
    if (sequence.taken && sequence.last_use < calls_ &&
        (found == nullptr || sequence.last_use < found->last_use))
      found = &sequence;
  return found;
}

void Drafter::forget(Sequence& sequence) {
  slots_.erase(sequence.request);
  free_.insert(free_.end(), sequence.blocks.begin(), sequence.blocks.end());
  sequence.blocks.clear();
  sequence.tokens.clear();
  sequence.taken = false;
}

}  // namespace hearth
