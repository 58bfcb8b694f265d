#include "tools/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/host/printable.h"
#include "tools/terminal_columns.h"

namespace hearth {
namespace {

constexpr auto kRewriteInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(10);
// Before that an estimate jumps about.
constexpr double kSecondsBeforeEstimate = 1.0;
constexpr std::string_view kEraseLine = "\r\033[K";
constexpr size_t kWidestBar = 30, kNarrowestBar = 8;

// At most `bytes` of the text, without cutting a UTF-8 character in two.
std::string_view cut_to_bytes(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

double done_fraction(uint64_t done, uint64_t total) {
  if (total == 0) return 1;
  return static_cast<double>(std::min(done, total)) / static_cast<double>(total);
}

}  // namespace

ProgressOutput ProgressOutput::standard_error(bool json) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return {.style = terminal ? Style::kRewrite
                   : json   ? Style::kNone
                            : Style::kLines,
          .write =
              [](std::string_view text) {
                std::fwrite(text.data(), 1, text.size(), stderr);
                std::fflush(stderr);
              },
          .columns = [] { return terminal_columns(STDERR_FILENO); }};
}

Progress::Progress(std::string title, ProgressOutput output)
    : title_(printable(title)),
      output_(std::move(output)),
      start_(output_.now()),
      last_shown_(start_) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (std::exchange(shown_, false)) output_.write(kEraseLine);
}

void Progress::update(uint64_t done, uint64_t total, std::string_view detail) {
  if (output_.style == ProgressOutput::Style::kNone) return;
  const ProgressOutput::Clock::time_point now = output_.now();
  if (output_.style == ProgressOutput::Style::kRewrite) {
    if (shown_ && now - last_shown_ < kRewriteInterval) return;
    rewrite(done, total, status(done, total, detail, now));
  } else {
    if (now - last_shown_ < kLineInterval) return;
    output_.write(fmt::format("hearth: {}: {}\n", title_, status(done, total, detail, now)));
  }
  last_shown_ = now;
}

std::string Progress::status(uint64_t done, uint64_t total, std::string_view detail,
                             ProgressOutput::Clock::time_point now) const {
  const double part = done_fraction(done, total);
  std::string text = fmt::format("{:.0f} %", std::floor(part * 100));
  if (!detail.empty()) text += fmt::format(", {}", printable(detail));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (elapsed >= kSecondsBeforeEstimate && part > 0 && part < 1)
    text += fmt::format(", about {} left", format_duration(elapsed * (1 - part) / part));
  return text;
}

// A line that reached the last column would wrap, and only its last row would be erased. Bytes are
// counted as columns, which is never too few.
void Progress::rewrite(uint64_t done, uint64_t total, const std::string& status) {
  const size_t columns = std::max(output_.columns(), 2u) - 1;
  std::string line = title_;
  const size_t without_bar = title_.size() + status.size() + 4;  // " [" and "] "
  if (without_bar + kNarrowestBar <= columns) {
    const size_t width = std::min(columns - without_bar, kWidestBar);
    const auto filled =
        static_cast<size_t>(done_fraction(done, total) * static_cast<double>(width));
    line += fmt::format(" [{}{}] ", std::string(filled, '='), std::string(width - filled, ' '));
  } else {
    line += ' ';
  }
  line += status;
  output_.write(fmt::format("{}{}", kEraseLine, cut_to_bytes(line, columns)));
  shown_ = true;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(std::ceil(seconds), 0.0, 3.6e8));
  const uint64_t minutes = whole / 60, hours = minutes / 60;
  if (minutes == 0) return fmt::format("{} s", whole);
  if (minutes < 10) return fmt::format("{} min {} s", minutes, whole % 60);
  if (hours == 0) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", hours, minutes % 60);
}

}  // namespace hearth
