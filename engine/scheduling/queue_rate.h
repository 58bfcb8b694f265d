// How long a request will wait in the queue, from how fast requests have left it. Pure: the caller
// says what time it is, in seconds on a clock of its own.
//
// Only times in which somebody waited count: an idle engine says nothing about how fast it is.
#pragma once

#include <cstddef>
#include <optional>

namespace hearth {

class QueueRate {
 public:
  // A request left the queue, and `behind` are still in it.
  void left(double now, std::size_t behind) {
    if (waited_since_) {
      constexpr double kKept = 1 - 1.0 / 32;  // about the last 32 requests count
      seconds_ = kKept * seconds_ + (now - *waited_since_);
      requests_ = kKept * requests_ + 1;
    }
    waited_since_ = behind > 0 ? std::optional(now) : std::nullopt;
  }
  // How long a request would wait that joined the queue behind `queued` others; 0 as long as too
  // little is known.
  double wait_seconds(std::size_t queued) const {
    constexpr double kEnough = 4;  // requests
    if (requests_ < kEnough) return 0;
    return static_cast<double>(queued) * seconds_ / requests_;
  }

 private:
  double seconds_ = 0, requests_ = 0;   // recent times between two requests, and their number
  std::optional<double> waited_since_;  // the last one left; somebody has waited all the time since
};

}  // namespace hearth
