#include "runtime/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace hearth {
namespace {

std::mutex& sink_mutex() {
  static std::mutex mutex;
  return mutex;
}

LogSink& current_sink() {
  static LogSink sink;
  return sink;
}

}  // namespace

void log_line(std::string_view line) {
  const std::lock_guard lock(sink_mutex());
  if (current_sink()) {
    current_sink()(line);
    return;
  }
  std::fprintf(stderr, "hearth: %.*s\n", static_cast<int>(line.size()), line.data());
}

ScopedLogSink::ScopedLogSink(LogSink sink) {
  const std::lock_guard lock(sink_mutex());
  previous_ = std::exchange(current_sink(), std::move(sink));
}

ScopedLogSink::~ScopedLogSink() {
  const std::lock_guard lock(sink_mutex());
  current_sink() = std::move(previous_);
}

}  // namespace hearth
