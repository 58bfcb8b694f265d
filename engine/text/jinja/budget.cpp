#include "engine/text/jinja/budget.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hearth::jinja {
namespace {

// About 50 microseconds of work between two looks at the clock.
constexpr std::uint64_t kStepsPerCheck = 1024;

}  // namespace

void fail(std::string reason, std::uint32_t line) { throw Failure{std::move(reason), line}; }

Budget::Budget(const Limits& limits, const std::atomic<bool>* cancelled)
    : limits_(limits),
      cancelled_(cancelled),
      deadline_(std::chrono::steady_clock::now() + limits.time),
      // Strings count their bytes in 32 bits.
      memory_left_(
          std::min<std::size_t>(limits.memory_bytes, std::numeric_limits<std::uint32_t>::max())) {}

void Budget::check() {
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed))
    fail("rendering was cancelled");
  if (steps_ > limits_.steps) fail("the template takes too many steps");
  if (std::chrono::steady_clock::now() > deadline_) fail("the template runs for too long");
  next_check_ = std::min(steps_ + kStepsPerCheck, limits_.steps + 1);
}

}  // namespace hearth::jinja
