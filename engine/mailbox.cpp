#include "engine/mailbox.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <fmt/format.h>

namespace hearth {

Mailbox::Mailbox(const EngineSettings& settings, bool start_paused, const TimeSource& time)
    : time_(time), control_{.paused = start_paused}, settings_(settings) {}

Mailbox::QueuePlaces::QueuePlaces(QueuePlaces&& other) noexcept
    : mailbox_(other.mailbox_),
      count_(std::exchange(other.count_, 0)),
      first_id_(other.first_id_) {}

Mailbox::QueuePlaces::~QueuePlaces() {
  if (count_ == 0) return;
  const std::lock_guard lock(mailbox_.mutex_);
  mailbox_.queued_ -= count_;
}

Status Mailbox::check_open() const {
  if (!failure_.empty()) return Error{ErrorKind::kDeviceLost, failure_};
  if (control_.draining || control_.closing)
    return unsupported("the engine is shutting down and accepts no more requests");
  return {};
}

Result<Mailbox::QueuePlaces> Mailbox::reserve(size_t requests) {
  const std::lock_guard lock(mutex_);
  HEARTH_TRY(check_open());
  const size_t most = settings_.limits.max_queue;
  if (requests > most)
    return invalid(
        fmt::format("{} requests at once are more than the queue of {} can hold", requests, most));
  if (queued_ + requests > most)
    return Error{
        ErrorKind::kBusy,
        fmt::format("{} requests are already waiting, and the queue takes {}; try again later",
                    queued_, most)};
  const double wait = queue_rate_.wait_seconds(queued_), longest = longest_wait();
  if (longest > 0 && wait > longest)
    return Error{ErrorKind::kBusy,
                 fmt::format("{} requests are waiting, so a new one would wait about {:.1f} s; the "
                             "limit is {:g} s. Try again later.",
                             queued_, wait, longest)};
  if (queued_ == 0) queue_stands_since_ = time_.now();
  queued_ += requests;
  const RequestId first_id = next_id_;
  next_id_ += requests;
  return QueuePlaces(*this, requests, first_id);
}

double Mailbox::longest_wait() const { return 1e-3 * settings_.policy.max_wait_ms; }

double Mailbox::retry_seconds() const {
  constexpr double kLongest = 600;
  constexpr double kShareToLeave = 0.1;  // of a full queue, before others are let in
  const std::lock_guard lock(mutex_);
  const double wait = queue_rate_.wait_seconds(queued_);
  const double stands =
      queued_ == 0 ? 0 : std::chrono::duration<double>(time_.now() - queue_stands_since_).count();
  const double estimate = longest_wait() > 0 ? wait - longest_wait() : kShareToLeave * wait;
  return std::clamp(wait > 0 ? estimate : stands, 1.0, kLongest);
}

Status Mailbox::post(QueuePlaces places, std::vector<std::unique_ptr<ActiveRequest>> requests) {
  {
    const std::lock_guard lock(mutex_);
    HEARTH_TRY(check_open());  // it may have changed while the requests were built
    requests_.insert(requests_.end(), std::make_move_iterator(requests.begin()),
                     std::make_move_iterator(requests.end()));
    unfinished_ += requests.size();
    places.count_ = 0;  // the requests hold them now
  }
  wake_.notify_all();
  return {};
}

void Mailbox::cancel(RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    if (control_.closing) return;  // every request is about to end
    cancelled_.push_back(request);
  }
  wake_.notify_all();
}

void Mailbox::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_all();
}

void Mailbox::run(const Task& task) {
  bool done = false;
  post([&] {
    task();
    const std::lock_guard lock(mutex_);
    done = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done; });
}

EngineSettings Mailbox::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

template <class Change>
void Mailbox::change_control(Change change) {
  {
    const std::lock_guard lock(mutex_);
    change(control_);
    control_changed_ = true;
  }
  wake_.notify_all();
}

void Mailbox::pause() {
  change_control([](Control& control) {
    control.paused = true;
    control.single_steps = 0;
  });
}

void Mailbox::resume() {
  change_control([](Control& control) { control.paused = false; });
}

void Mailbox::step_once() {
  change_control([](Control& control) { ++control.single_steps; });
}

void Mailbox::set_pace(double steps_per_s) {
  constexpr double kSlowest = 1e-3;
  change_control([&](Control& control) {
    control.pace = steps_per_s > 0 ? std::max(steps_per_s, kSlowest) : 0;
  });
}

void Mailbox::drain() {
  change_control([](Control& control) {
    control.draining = true;
    control.paused = false;
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return unfinished_ == 0; });
}

void Mailbox::undrain() {
  change_control([](Control& control) { control.draining = false; });
}

void Mailbox::close() {
  change_control([](Control& control) { control.closing = true; });
}

EngineState Mailbox::state() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return EngineState::kFailed;
  if (control_.draining || control_.closing) return EngineState::kDraining;
  return control_.paused ? EngineState::kPaused : EngineState::kRunning;
}

std::string Mailbox::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Mailbox::collect(Mail& mail, EngineClock::time_point last_begin) {
  mail.requests.clear();
  mail.cancelled.clear();
  mail.tasks.clear();
  const std::lock_guard lock(mutex_);
  std::swap(mail.requests, requests_);
  std::swap(mail.cancelled, cancelled_);
  std::swap(mail.tasks, tasks_);
  mail.draining = control_.draining;
  mail.closing = control_.closing;
  mail.may_begin_step = may_begin(last_begin);
  if (control_.paused && control_.single_steps > 0) --control_.single_steps;
  control_changed_ = false;
}

bool Mailbox::may_begin(EngineClock::time_point last_begin) const {
  if (control_.paused) return control_.single_steps > 0;
  return time_.now() >= next_begin(last_begin);
}

EngineClock::time_point Mailbox::next_begin(EngineClock::time_point last_begin) const {
  if (control_.pace == 0) return last_begin;
  return last_begin + std::chrono::duration_cast<EngineClock::duration>(
                          std::chrono::duration<double>(1.0 / control_.pace));
}

void Mailbox::wait(const Sleep& sleep) {
  // The clock may be a simulation's, which does not move with the real one.
  constexpr EngineClock::duration kLongest = std::chrono::milliseconds(5);
  std::unique_lock lock(mutex_);
  const auto called = [&] {
    return control_changed_ || !requests_.empty() || !cancelled_.empty() || !tasks_.empty() ||
           (control_.paused && control_.single_steps > 0) ||
           (sleep.has_work && may_begin(sleep.last_begin));
  };
  const bool paced = sleep.has_work && !control_.paused;
  if (!paced && !sleep.alarm) return wake_.wait(lock, called);
  const EngineClock::time_point now = time_.now();
  EngineClock::duration longest = kLongest;
  if (paced) longest = std::min(longest, next_begin(sleep.last_begin) - now);
  if (sleep.alarm) longest = std::min(longest, *sleep.alarm - now);
  wake_.wait_for(lock, longest, called);
}

void Mailbox::release_place() {
  const std::lock_guard lock(mutex_);
  --queued_;
  queue_stands_since_ = time_.now();
  queue_rate_.left(std::chrono::duration<double>(time_.now().time_since_epoch()).count(), queued_);
}

void Mailbox::count_end() {
  const std::lock_guard lock(mutex_);
  --unfinished_;
  if (unfinished_ == 0) changed_.notify_all();
}

void Mailbox::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = std::move(why);
}

}  // namespace hearth
