#include "engine/request_table.h"

#include "engine/beam_group.h"
#include "engine/contrastive_request.h"

namespace hearth {

RequestTable::RequestTable(const Links& links, size_t sequences) : links_(links) {
  arrived_.reserve(sequences);
  finished_.reserve(sequences);
  cancelled_.reserve(sequences);
}

void RequestTable::accept(std::unique_ptr<ActiveRequest> request) {
  const RequestId id = request->id();
  const GenerationRequest& asked = request->request();
  NewRequest added{.prompt = asked.prompt,
                   .max_new_tokens = request->max_new_tokens(),
                   .priority = asked.priority,
                   .cache_salt = asked.cache_salt,
                   .with_host =
                       request->constraint() != nullptr || request->samplers().need_host(),
                   .score_prompt = request->scores_prompt()};
  if (asked.guidance.guides()) added.shadow_prompt = asked.guidance.negative_prompt;
  if (request->contrastive() != nullptr) {
    added.max_new_tokens += most_candidates(asked);
    added.candidates = most_candidates(asked);
    added.with_host = added.compute_all = true;
  }
  if (asked.fork)
    added.fork = ForkPoint{.parent = asked.fork->parent, .position = asked.fork->tokens};
  if (asked.forks_first)
    added.fork = ForkPoint{.parent = fork_parent_, .position = request->prompt_tokens()};
  else
    fork_parent_ = id;
  arrived_.push_back({.request = id,
                      .seconds = links_.publisher.seconds_at(request->submitted()),
                      .prompt_tokens = request->prompt_tokens(),
                      .max_tokens = request->prompt_tokens() + request->max_new_tokens()});
  if (request->deadline()) deadlines_.emplace(*request->deadline(), id);
  const std::shared_ptr<BeamGroup> beams = request->beams();
  const std::shared_ptr<Constraint> constraint = request->constraint();
  requests_.emplace(id, std::move(request));
  links_.publisher.accepted();
  if (beams != nullptr) {
    added.with_host = true;
    added.seats = beams->size();
    if (beams->ended()) return end(id, beams->reason(), beams->message());
    if (id != beams->first()) return;  // becomes a fork when the prompt is computed
  }
  const AddResult result = links_.scheduler.add(id, added);
  if (constraint != nullptr) links_.scheduler.force(id, constraint->forced());
  // submit() has checked this, but the limits may have changed since.
  if (!result.accepted()) end(id, FinishReason::kError, result.message);
}

void RequestTable::admit(ActiveRequest& request, uint64_t batch, EngineClock::time_point now) {
  if (request.admitted_before()) return;
  if (batch != 0) held_.join(request, batch);
  request.admit(now);
  if (!request.hidden()) links_.publisher.admitted(request);
  links_.mailbox.release_place();
}

ActiveRequest* RequestTable::find(RequestId id) const {
  const auto place = requests_.find(id);
  return place == requests_.end() ? nullptr : place->second.get();
}

void RequestTable::end(RequestId id, FinishReason reason, std::string message) {
  const auto place = requests_.find(id);
  if (place == requests_.end()) {
    // Its answer may be complete and held back.
    if (!held_.empty()) held_.release(id, ready_);
    return deliver_ready();
  }
  std::unique_ptr<ActiveRequest> request = std::move(place->second);
  requests_.erase(place);
  links_.scheduler.finish(id);
  finished_.push_back(id);
  if (reason == FinishReason::kCancelled) cancelled_.push_back(id);
  links_.publisher.show_counts(links_.scheduler.counts());
  if (!request->admitted_before()) links_.mailbox.release_place();
  if (reason != FinishReason::kError) share_output(*request);
  if (request->beams() != nullptr) end_beams(*request, reason, message);
  held_.end({std::move(request), reason, std::move(message)}, ready_);
  deliver_ready();
}

void RequestTable::share_output(const ActiveRequest& request) {
  if (links_.outputs == nullptr || request.hidden() || request.request().cache_salt != 0) return;
  links_.outputs->add(request.request().owner,
                      std::span<const TokenId>(request.tokens()).subspan(request.prompt_tokens()));
}

// Ends the other requests of a beam search for the same reason, unless the search itself has ended.
void RequestTable::end_beams(const ActiveRequest& request, FinishReason reason,
                             const std::string& message) {
  BeamGroup& beams = *request.beams();
  if (beams.ended()) return;
  beams.end(reason, message);
  for (uint32_t i = 0; i < beams.size(); ++i)
    if (requests_.contains(beams.member(i))) end(beams.member(i), reason, message);
}

void RequestTable::deliver_ready() {
  for (BatchDelivery::Ended& ended : ready_) deliver_end(std::move(ended));
  ready_.clear();
}

void RequestTable::deliver_held_tokens(ActiveRequest& request) {
  const EngineClock::time_point now = links_.time.now();
  while (request.release_token(now)) links_.publisher.delivered_token(request);
}

void RequestTable::deliver_certain(ActiveRequest& request) {
  const EngineClock::time_point now = links_.time.now();
  while (request.release_certain(now))
    if (!request.held()) links_.publisher.delivered_token(request);
}

void RequestTable::deliver_end(BatchDelivery::Ended ended) {
  ActiveRequest& request = *ended.request;
  if (request.deadline()) deadlines_.erase({*request.deadline(), request.id()});
  if (request.has_banned_strings()) {
    request.stop_guarding();
    deliver_certain(request);
  }
  if (request.held()) deliver_held_tokens(request);
  request.stop_clock(links_.time.now());
  if (!request.hidden()) links_.publisher.ended(request, ended.reason);
  request.finish(ended.reason, std::move(ended.message));
  links_.mailbox.count_end();
}

void RequestTable::release_held() {
  if (held_.empty()) return;
  held_.release(ready_);
  deliver_ready();
  for (const auto& [id, request] : requests_)
    if (request->held()) deliver_held_tokens(*request);
}

void RequestTable::end_all(FinishReason reason, const std::string& message) {
  while (!requests_.empty()) end(requests_.begin()->first, reason, message);
}

void RequestTable::end_expired(EngineClock::time_point now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now)
    end(deadlines_.begin()->second, FinishReason::kTimeLimit,
        "the request's time limit has passed");
}

std::optional<EngineClock::time_point> RequestTable::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void RequestTable::report(StepRecord& record) {
  std::swap(record.arrived, arrived_);
  arrived_.clear();
  std::swap(record.finished, finished_);
  finished_.clear();
  std::swap(record.cancelled, cancelled_);
  cancelled_.clear();
}

}  // namespace hearth
