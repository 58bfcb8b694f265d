// The Compare panel's data: what is compared, the run in the background, and the player. Call only
// from the window's thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/result.h"
#include "ui/data/background_task.h"
#include "ui/data/comparison.h"
#include "ui/data/comparison_player.h"

namespace hearth {

// What someone asked the panel to compare.
struct ComparisonWish {
  PolicyPair policies;
  std::string requests{kComparedRequests};
  std::optional<ComparisonPlan> plan;  // of a lesson, instead of the two above
  bool at_end = false;                 // show the outcome instead of playing it
};

class ComparisonDesk {
 public:
  // Runs work that needs the session while no engine uses it; false if it cannot now.
  using Borrow = std::function<bool(std::function<void(Session&)> work)>;

  std::array<std::string, 2> labels;  // chosen: "static", "continuous"
  std::string requests{kComparedRequests};

  // Remembers the wish; update() starts it as soon as the device is free.
  void want(ComparisonWish wish);
  // Wants what `labels` and `requests` say.
  void run();
  // Call once per frame. `borrow` empty: on the modelled device; `limits` are those of both sides.
  void update(double seconds_passed, bool device_ready, const SchedulerLimits& limits,
              const Borrow& borrow);

  bool running() const {
    return wish_.has_value() || simulation_.busy() || measurement_ != nullptr;
  }
  std::string status() const;  // while running
  const std::string& failure() const { return failure_; }
  ComparisonPlayer player;

 private:
  // Filled by the thread that has the session.
  struct Measurement {
    std::mutex mutex;
    std::string status;
    std::optional<Result<Comparison>> outcome;
  };
  void start(const SchedulerLimits& limits, const Borrow& borrow);
  void take(Result<Comparison> outcome);

  std::optional<ComparisonWish> wish_;
  bool at_end_ = false;
  BackgroundTask<Result<Comparison>> simulation_;
  std::shared_ptr<Measurement> measurement_;
  std::string failure_;
};

}  // namespace hearth
