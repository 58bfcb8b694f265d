#include "engine/model/step_preparation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/log.h"

namespace hearth {
namespace {

// Of this thread: everything else that wants a core gets it first. On Linux a thread has its own
// priority.
void lower_thread_priority() {
  constexpr int kNiceness = 10;
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness));
}

}  // namespace

StepPreparation::StepPreparation(PipelineStore& pipelines, const std::vector<PreparedSteps>& steps,
                                 StepPreparationOptions options)
    : pipelines_(pipelines), options_(std::move(options)) {
  const auto list = [&](const auto& survey, std::span<const StepBucket> buckets) {
    for (const StepBucket& bucket : buckets)
      surveys_.push_back([survey, bucket] { return survey(bucket); });
  };
  for (const PreparedSteps& each : steps) list(each.survey, each.minimum);
  minimum_surveys_ = surveys_.size();
  for (const PreparedSteps& each : steps) list(each.survey, each.rest);
  const unsigned threads =
      options_.threads != 0 ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

StepPreparation::~StepPreparation() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // joins
}

Status StepPreparation::wait_for_minimum() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return minimum_is_ready() || minimum_error_; });
  if (minimum_error_) return *minimum_error_;
  return {};
}

void StepPreparation::hurry(std::span<const PipelineInfo> infos) {
  {
    const std::lock_guard lock(mutex_);
    for (const PipelineInfo& info : infos) {
      seen_.insert(info);
      urgent_.push_back(info);
    }
  }
  changed_.notify_all();
}

PreparationProgress StepPreparation::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_now();
}

PreparationProgress StepPreparation::progress_now() const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
  return {.ready = ready_,
          .total = seen_.size(),
          .done = announced_,
          .seconds = announced_ ? seconds_ : since.count()};
}

void StepPreparation::work() {
  bool lowered = false;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!lowered && minimum_is_ready()) {
      lower_thread_priority();
      lowered = true;
    }
    if (work_once(lock)) continue;
    if (!announced_ && all_is_ready()) {
      announced_ = true;
      const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
      seconds_ = since.count();
      const PreparationProgress progress = progress_now();
      lock.unlock();
      pipelines_.save();
      if (options_.done) options_.done(progress);
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
}

bool StepPreparation::work_once(std::unique_lock<std::mutex>& lock) {
  std::deque<PipelineInfo>& queue = !urgent_.empty() ? urgent_ : queue_;
  if (!queue.empty()) {
    const PipelineInfo info = std::move(queue.front());
    queue.pop_front();
    compile(info, lock);
    return true;
  }
  // The rest is listed after the minimum, so that the minimum is known.
  const bool may_list = next_survey_ < minimum_surveys_ || minimum_is_listed();
  if (next_survey_ < surveys_.size() && may_list) {
    survey_next(lock);
    return true;
  }
  if (cold_.empty() || warming_) return false;
  warm_up_next(lock);
  return true;
}

void StepPreparation::survey_next(std::unique_lock<std::mutex>& lock) {
  const size_t index = next_survey_++;
  const bool minimum = index < minimum_surveys_;
  lock.unlock();
  std::vector<PipelineInfo> infos = surveys_[index]();
  lock.lock();
  for (PipelineInfo& info : infos) {
    if (!seen_.insert(info).second) continue;
    if (minimum) {
      minimum_.insert(info);
      ++minimum_left_;
    }
    queue_.push_back(std::move(info));
  }
  ++listed_;
  changed_.notify_all();
}

void StepPreparation::compile(const PipelineInfo& info, std::unique_lock<std::mutex>& lock) {
  if (finished_.contains(info)) return;
  lock.unlock();
  const Result<const Pipeline*> pipeline = pipelines_.get(info);
  const bool lost = !pipeline.ok() && pipeline.error().kind == ErrorKind::kDeviceLost;
  if (pipeline.ok())
    pipelines_.save_if_grown();
  else if (!lost)
    log_line(fmt::format("a kernel cannot be compiled: {}", pipeline.error().message));
  lock.lock();
  if (lost) return stop(pipeline.error());
  if (!finished_.insert(info).second) return;
  if (pipeline.ok() && options_.warm_up)
    cold_.push_back(*pipeline);
  else if (pipeline.ok())
    ++ready_;
  if (minimum_.contains(info)) {
    --minimum_left_;
    if (!pipeline.ok() && !minimum_error_) minimum_error_ = pipeline.error();
  }
  changed_.notify_all();
}

// Steps run meanwhile, and have the driver compile what they need themselves.
void StepPreparation::warm_up_next(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds kPause{20};
  const Pipeline& pipeline = *cold_.front();
  warming_ = true;
  lock.unlock();
  const Result<bool> warm = options_.warm_up(pipeline);
  lock.lock();
  warming_ = false;
  if (!warm.ok() && warm.error().kind == ErrorKind::kDeviceLost) return stop(warm.error());
  if (warm.ok() && !*warm) {
    changed_.wait_for(lock, kPause);
    return;
  }
  cold_.pop_front();
  // Else the driver tries again when a step runs it, which then has the error.
  if (warm.ok()) ++ready_;
  changed_.notify_all();
}

void StepPreparation::stop(const Error& error) {
  // No other one will be compiled, either; the engine says so.
  stopping_ = true;
  minimum_error_ = error;
  changed_.notify_all();
}

}  // namespace hearth
