// Shows how far a long piece of work has come and about how long the rest will take. On a terminal
// one line rewrites itself; elsewhere a line is written every ten seconds, so that a log shows that
// the program is alive and work that ends sooner prints nothing.
//
//   Progress progress("perplexity");
//   for (...) progress.update(chunk, chunks, fmt::format("chunk {} of {}", chunk, chunks));
//
// Called from one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hearth {

// Where progress goes. Tests replace the parts.
struct ProgressOutput {
  enum class Style : uint8_t {
    kRewrite,  // one line, erased at the end
    kLines,    // one line every ten seconds
    kNone,
  };
  using Clock = std::chrono::steady_clock;

  Style style = Style::kNone;
  std::function<void(std::string_view text)> write;
  std::function<uint32_t()> columns;  // of the terminal, which may be resized
  std::function<Clock::time_point()> now = Clock::now;

  // Standard error, rewriting if it is a terminal. With `json`, when stdout is meant for a program,
  // it writes to a terminal only: a script may read both streams as one.
  static ProgressOutput standard_error(bool json = false);
};

class Progress {
 public:
  explicit Progress(std::string title, ProgressOutput output = ProgressOutput::standard_error());
  // Erases the line if one is shown.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total`, in units of equal cost. The time left is estimated from the time since
  // construction. `detail` is shown after the percentage: "chunk 3 of 40".
  void update(uint64_t done, uint64_t total, std::string_view detail = {});
  // Erases the line, so that other text can be printed; the next update() shows it again.
  void clear();

 private:
  std::string status(uint64_t done, uint64_t total, std::string_view detail,
                     ProgressOutput::Clock::time_point now) const;
  void rewrite(uint64_t done, uint64_t total, const std::string& status);

  std::string title_;
  ProgressOutput output_;
  ProgressOutput::Clock::time_point start_, last_shown_;
  bool shown_ = false;  // a line that has to be erased
};

// "8 s", "1 min 20 s", "25 min", "1 h 05 min".
std::string format_duration(double seconds);

}  // namespace hearth
