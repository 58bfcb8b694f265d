// What one rendering may use: steps, nesting, memory, output, time; and how it is stopped. Every
// part of the interpreter charges its work here, so no filter or method runs unbounded.
//
// Inside the interpreter an error is an exception, Failure, because almost every line of a filter
// can fail. It never leaves this folder: Template turns it into an Error with a line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::jinja {

struct Limits {
  std::uint64_t steps = 50'000'000;  // one per syntax node evaluated, one per 16 bytes handled
  std::uint32_t depth = 1000;        // syntax nodes and containers inside one another
  std::size_t output_bytes = 32u << 20;
  std::size_t memory_bytes = 128u << 20;  // values are only freed at the end; below 4 GiB
  std::chrono::milliseconds time{2000};
};

struct Failure {
  std::string reason;
  std::uint32_t line = 0;  // 0: not known here; the catcher adds it
};

[[noreturn]] void fail(std::string reason, std::uint32_t line = 0);

// Reasons are cut to this length, so a message need not copy more of a long text than that.
inline constexpr std::size_t kMaxReasonBytes = 500;
inline std::string_view excerpt(std::string_view text) { return text.substr(0, kMaxReasonBytes); }

class Budget {
 public:
  // `cancelled` may be null; otherwise it outlives the budget and any thread may set it.
  Budget(const Limits& limits, const std::atomic<bool>* cancelled);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ >= next_check_) check();
  }
  void handle_bytes(std::size_t bytes) { step(bytes / 16 + 1); }
  // The same, but without failing at once: if it is too much, the next step fails.
  void note_bytes(std::size_t bytes) noexcept { steps_ += bytes / 16 + 1; }

  void take_memory(std::size_t bytes) {
    if (bytes > memory_left_) fail("the template needs too much memory");
    memory_left_ -= bytes;
  }
  void return_memory(std::size_t bytes) { memory_left_ += bytes; }

  const Limits& limits() const { return limits_; }

 private:
  friend class Nested;
  void check();

  Limits limits_;
  const std::atomic<bool>* cancelled_;
  std::chrono::steady_clock::time_point deadline_;
  std::uint64_t steps_ = 0, next_check_ = 0;
  std::size_t memory_left_;
  std::uint32_t depth_ = 0;
};

// Charges a walk over a text while it continues rather than all at once, so that even a walk over
// the longest text notices within a fraction of a millisecond that time is up.
class Meter {
 public:
  explicit Meter(Budget& budget) : budget_(budget) {}
  ~Meter() { budget_.note_bytes(reached_ - charged_); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // To be called with every position. Positions never decrease.
  void reach(std::size_t position) {
    reached_ = position;
    if (reached_ - charged_ < kBytesPerCharge) return;
    budget_.handle_bytes(reached_ - charged_);
    charged_ = reached_;
  }

 private:
  static constexpr std::size_t kBytesPerCharge = 16 * 1024;

  Budget& budget_;
  std::size_t reached_ = 0, charged_ = 0;
};

// One level of nesting, for as long as it lives.
class Nested {
 public:
  explicit Nested(Budget& budget) : budget_(budget) {
    if (budget_.depth_ >= budget_.limits_.depth) fail("the template nests too deeply");
    ++budget_.depth_;
  }
  ~Nested() { --budget_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Budget& budget_;
};

}  // namespace hearth::jinja
