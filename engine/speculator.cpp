#include "engine/speculator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "runtime/log.h"

namespace hearth {
namespace {

// A number from 0 to 1 that follows from `index` alone.
double draw(uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

bool only_decodes(const StepRecord& record) {
  return record.padding_tokens == 0 &&
         std::ranges::all_of(record.members, [](const StepMember& member) {
           return member.phase == StepPhase::kDecode;
         });
}

}  // namespace

Speculator::Speculator(const Links& links, const SpeculationOptions& options)
    : links_(links), options_(options), ahead_(options.on_cpu), waiting_(options.on_cpu) {
  chances_.reserve(links.scheduler.limits().max_sequences);
  lengths_.reserve(links.scheduler.limits().max_sequences);
}

bool Speculator::holds_back(std::span<const SampledMember> members) const {
  if (options_.method == SpeculationMethod::kNone) return false;
  if (waits_) return true;
  const auto judged = static_cast<size_t>(
      std::ranges::count_if(members, [](const auto& member) { return member.proposed > 0; }));
  if (weighs_costs(options_.method)) return judged > 0;
  // Those with proposals would miss the next step; the others would lose little by waiting.
  return judged > 0 && 2 * judged >= members.size();
}

void Speculator::settle(RequestId request, std::span<const TokenId> proposed,
                        std::span<TokenId> sampled, std::span<uint32_t> accepted) {
  if (options_.method != SpeculationMethod::kSynthetic) return;
  for (uint32_t i = 0; i < proposed.size(); ++i) {
    const bool accepts = draw(request * 0x10001 + draws_++) < options_.synthetic_rate;
    accepted[i] = accepts ? i + 1 : 0;
    if (accepts)
      sampled[i] = proposed[i];
    else if (sampled[i] == proposed[i])
      sampled[i] = proposed[i] == 0 ? 1 : proposed[i] - 1;
  }
}

Status Speculator::propose(std::span<ActiveRequest* const> requests) {
  if (options_.method == SpeculationMethod::kNone) return {};
  // The step that was judged may be older than the drafts, which must be read before new ones
  // start.
  HEARTH_TRY(collect());
  drafted_before_seconds_ = draft_seconds_;
  draft_seconds_ = 0;
  job_count_ = 0;
  ids_needed_ = false;
  if (weighs_costs(options_.method)) {
    propose_by_cost(requests);
  } else {
    for (ActiveRequest* request : requests)
      if (request->speculation() != nullptr) propose_alone(*request);
  }
  return job_count_ > 0 ? draft() : Status{};
}

void Speculator::propose_alone(ActiveRequest& request) {
  const Speculation& speculation = *request.speculation();
  if (links_.scheduler.ledger(request.id())->pending()) {
    const bool can = !speculation.drafts() || links_.drafter != nullptr;
    links_.scheduler.set_with_host(
        request.id(), (can && speculation.promising()) || request.samplers().need_host());
    return;
  }
  propose_length(request, speculation.length());
  // The step that judges them waits for the host anyway; without any, it need not.
  links_.scheduler.set_with_host(request.id(), request.samplers().need_host());
}

uint32_t Speculator::room(const ActiveRequest& request) const {
  // The token after the last proposal needs room, too.
  const TokenLedger& ledger = *links_.scheduler.ledger(request.id());
  const uint32_t left = ledger.max_tokens() - ledger.committed();
  return left > 0 ? left - 1 : 0;
}

// From the text now, or from the draft model together with the others' in draft().
void Speculator::propose_length(ActiveRequest& request, uint32_t length) {
  length = std::min(length, room(request));
  if (!request.speculation()->drafts()) {
    const Proposal& proposal = request.speculation()->propose(length);
    links_.scheduler.propose(request.id(), proposal.tokens, proposal.parents);
    return;
  }
  if (length == 0 || links_.drafter == nullptr) return;
  if (job_count_ == jobs_.size()) jobs_.emplace_back();
  ids_needed_ |= request.needs_proposed_ids();
  DraftJob& job = jobs_[job_count_++];
  job.request = request.id();
  job.tokens = request.tokens();
  job.sampling = request.sampling_row(0, static_cast<uint32_t>(request.tokens().size()));
  job.sampling.flags &= ~params::kSamplingMix;  // the draft model has no amateur
  job.length = length;
  job.most = options_.method == SpeculationMethod::kTree ? most_proposed(options_) : length;
}

Status Speculator::draft() {
  const std::span<DraftJob> jobs = std::span(jobs_).first(job_count_);
  ++round_;
  drafting_since_ = links_.time.now();
  if (const Status status = links_.drafter->start(jobs); !status.ok())
    return stop_drafting(status.error());
  unread_ = can_verify_unread(links_.drafter->options(), ids_needed_);
  if (!unread_) HEARTH_TRY(read_drafts());
  for (const DraftJob& job : jobs) {
    if (unread_)
      links_.scheduler.propose(job.request, job.unread);
    else
      links_.scheduler.propose(job.request, job.proposal.tokens, job.proposal.parents);
  }
  return {};
}

// A request may have ended meanwhile, and a plan may have dropped proposals; the scheduler ignores
// what is said about those.
Status Speculator::collect() {
  if (!std::exchange(unread_, false)) return {};
  HEARTH_TRY(read_drafts());
  for (const DraftJob& job : std::span(jobs_).first(job_count_))
    links_.scheduler.learn_proposals(job.request, job.proposal.tokens);
  return {};
}

// Without the draft model the jobs have no proposals.
Status Speculator::stop_drafting(const Error& error) {
  if (error.kind == ErrorKind::kDeviceLost) return error;
  log_line(fmt::format("the draft model is no longer used: {}", error.message));
  links_.drafter = nullptr;
  return {};
}

// Measures what drafting took on the way: up to where the host has seen the last draft, so that a
// step that was submitted behind the drafts takes the time from there on.
Status Speculator::read_drafts() {
  const std::span<DraftJob> jobs = std::span(jobs_).first(job_count_);
  if (const Status status = links_.drafter->collect(jobs); !status.ok())
    return stop_drafting(status.error());
  read_round_ = round_;
  read_at_ = links_.time.now();
  draft_seconds_ = std::chrono::duration<double>(read_at_ - drafting_since_).count();
  const DraftWork& work = links_.drafter->last_work();
  // A prompt that the draft model has yet to read says nothing about later drafts.
  if (work.levels == 0 || work.first_rows > 4 * jobs.size()) return {};
  const double seconds = draft_seconds_ / work.levels;
  draft_step_seconds_ += draft_step_seconds_ == 0 ? seconds : (seconds - draft_step_seconds_) / 8;
  return {};
}

void Speculator::propose_by_cost(std::span<ActiveRequest* const> requests) {
  waits_ = false;
  chances_.clear();
  const uint32_t most = most_proposed(options_);
  for (ActiveRequest* request : requests) {
    ProposalChance chance;
    if (Speculation* speculation = request->speculation()) {
      chance.acceptance = speculation->acceptance(rates_, links_.drafter != nullptr);
      chance.most = std::min(most, room(*request));
      chance.drafted = speculation->drafts();
    }
    chances_.push_back(chance);
  }
  const SchedulerLimits& limits = links_.scheduler.limits();
  const uint32_t members = links_.scheduler.counts().running;
  const uint32_t left = limits.max_step_tokens - std::min(limits.max_step_tokens, members);
  choice_.choose(
      {.ahead = &ahead_, .waiting = &waiting_, .draft_step_seconds = draft_step_seconds_}, members,
      chances_, std::min(limits.max_proposed, left), lengths_);
  if (std::ranges::all_of(lengths_, [](uint32_t length) { return length == 0; })) return;
  waits_ = std::ranges::any_of(requests, [&](const ActiveRequest* request) {
    return links_.scheduler.ledger(request->id())->pending();
  });
  if (waits_) return;
  for (size_t i = 0; i < requests.size(); ++i)
    if (lengths_[i] > 0) propose_length(*requests[i], lengths_[i]);
}

void Speculator::took(const StepRecord& record, double seconds, bool ahead) {
  if (!weighs_costs(options_.method) || !only_decodes(record)) return;
  // Its drafts were made after the end of the step before it, and have a price of their own.
  if (!ahead) seconds -= drafted_before_seconds_;
  (ahead ? ahead_ : waiting_).add(record.tokens, seconds);
  (ahead ? waiting_ : ahead_).pass();
}

}  // namespace hearth
