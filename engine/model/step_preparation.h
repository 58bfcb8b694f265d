// Compiles the kernels of steps in the background, so that no step waits for a compiler. First a
// minimum with which every step can run, if not as fast as it could; then everything else that
// steps may ask for, likely ones first, at a low priority.
//
// Which pipelines a bucket needs is found out by recording it without a device (`survey`), on the
// same threads. Compiled code is saved as it grows. All functions may be called from any thread.
//
// Some drivers compile a kernel only when it first runs. For them `warm_up` follows, for one kernel
// after the other; a kernel counts as ready after that.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "engine/model/step_bucket.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// How far it has come. The total grows until everything is listed.
struct PreparationProgress {
  size_t ready = 0, total = 0;  // pipelines
  bool done = false;
  double seconds = 0;  // so far, or in all
};

// The steps of one runner.
struct PreparedSteps {
  // The pipelines that steps of a bucket need; called from several threads at once.
  std::function<std::vector<PipelineInfo>(const StepBucket&)> survey;
  std::vector<StepBucket> minimum, rest;
};

struct StepPreparationOptions {
  unsigned threads = 0;  // 0: one per core
  // Called once, when everything is compiled, on one of the threads.
  std::function<void(const PreparationProgress&)> done = {};
  // Makes the driver compile a pipeline that exists; false: not now, ask again later. Called by one
  // thread at a time. Null: the driver has done so.
  std::function<Result<bool>(const Pipeline&)> warm_up = {};
};

class StepPreparation {
 public:
  // Starts at once, with the minimum of all `steps`, then their rest. `pipelines` outlives it.
  StepPreparation(PipelineStore& pipelines, const std::vector<PreparedSteps>& steps,
                  StepPreparationOptions options);
  // Waits only for the pipelines that are being compiled.
  ~StepPreparation();
  StepPreparation(const StepPreparation&) = delete;
  StepPreparation& operator=(const StepPreparation&) = delete;

  // Returns when the minimum is compiled, with the first error.
  Status wait_for_minimum();
  // These are wanted now: compiles them before all others.
  void hurry(std::span<const PipelineInfo> infos);
  PreparationProgress progress() const;

 private:
  void work();
  // Does one thing; false if there is nothing to do now.
  bool work_once(std::unique_lock<std::mutex>& lock);
  void survey_next(std::unique_lock<std::mutex>& lock);
  void compile(const PipelineInfo& info, std::unique_lock<std::mutex>& lock);
  void warm_up_next(std::unique_lock<std::mutex>& lock);
  // After an error that all other pipelines would have, too.
  void stop(const Error& error);
  bool minimum_is_listed() const { return listed_ >= minimum_surveys_; }
  bool minimum_is_ready() const { return minimum_is_listed() && minimum_left_ == 0; }
  bool all_is_ready() const {
    return listed_ == surveys_.size() && finished_.size() == seen_.size() && cold_.empty();
  }
  PreparationProgress progress_now() const;

  PipelineStore& pipelines_;
  std::vector<std::function<std::vector<PipelineInfo>()>>
      surveys_;  // of the minimum, then the rest
  size_t minimum_surveys_ = 0;
  const StepPreparationOptions options_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, announced_ = false;
  size_t next_survey_ = 0, listed_ = 0;    // of surveys_
  std::set<PipelineInfo> seen_, minimum_;  // all, and those of the minimum
  std::set<PipelineInfo> finished_;        // compiled, or failed
  std::deque<PipelineInfo> queue_, urgent_;
  std::deque<const Pipeline*> cold_;  // to be warmed up; `warming_`: a thread is at the first one
  bool warming_ = false;
  size_t ready_ = 0, minimum_left_ = 0;
  std::optional<Error> minimum_error_;
  double seconds_ = 0;  // in all, once it is done

  std::vector<std::jthread> threads_;
};

}  // namespace hearth
