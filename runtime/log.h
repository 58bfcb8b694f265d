// One-line notices for the person at the terminal: something was ignored or done another way.
// Errors are returned (result.h), never logged. Any thread may call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hearth {

// Writes "hearth: <line>" to stderr, or hands the line to the sink that is set.
void log_line(std::string_view line);

using LogSink = std::function<void(std::string_view line)>;

// Replaces where lines go for as long as it lives. For tests and for the dashboard.
class ScopedLogSink {
 public:
  explicit ScopedLogSink(LogSink sink);
  ~ScopedLogSink();
  ScopedLogSink(const ScopedLogSink&) = delete;
  ScopedLogSink& operator=(const ScopedLogSink&) = delete;

 private:
  LogSink previous_;
};

}  // namespace hearth
