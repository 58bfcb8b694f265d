#include "runtime/log.h"

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/host/printable.h"

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

void log_line(std::string_view text) {
  const std::string line = printable(text);
  const std::lock_guard lock(sink_mutex());
  if (current_sink()) {
    current_sink()(line);
    return;
  }
  std::fprintf(stderr, "hearth: %s\n", line.c_str());
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
