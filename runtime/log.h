// One-line notices for the person at the terminal: something was ignored or done differently.
// Errors are returned (result.h), never logged. May be called from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hearth {

// Writes "hearth: <text>" to stderr, or passes the text to the current sink, as printable() makes
// it: names and messages from files may be part of it as they are, and it is always one line.
void log_line(std::string_view text);

using LogSink = std::function<void(std::string_view line)>;

// Redirects log lines to `sink` for its lifetime. For tests and for the dashboard.
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
