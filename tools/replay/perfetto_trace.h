// Writes steps as a trace that chrome://tracing and ui.perfetto.dev open: for each run a process
// with a track for the GPU, one for every sequence slot, and counters. Times count from the
// beginning of each run, so that several lie below each other.
//
// The file is valid JSON after every piece that is written, whatever happens later. One thread at a
// time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/step_record.h"
#include "runtime/result.h"

namespace hearth {

class PerfettoTrace {
 public:
  static Result<std::unique_ptr<PerfettoTrace>> create(const std::string& path);
  // Writes what is left; what goes wrong then is lost: call finish() to know.
  ~PerfettoTrace();
  PerfettoTrace(const PerfettoTrace&) = delete;
  PerfettoTrace& operator=(const PerfettoTrace&) = delete;

  // What follows belongs to a run of this name, whose steps count from `begin_seconds` of their
  // engine's clock.
  void begin_run(std::string_view name, uint32_t slots, double begin_seconds);
  // REQUIRES: begin_run() came first; in order of steps.
  void add(const StepRecord& record);
  // Writes everything. Fails if anything could not be written.
  Status finish();

 private:
  explicit PerfettoTrace(std::string path) : path_(std::move(path)) {}
  void event(std::string_view fields);
  void name_track(uint32_t track, std::string_view name);
  void mark(RequestId request, std::string_view name, double seconds);
  double microseconds(double seconds) const { return (seconds - begin_seconds_) * 1e6; }
  void flush();

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string buffer_;
  bool first_event_ = true, failed_ = false;
  uint32_t run_ = 0;  // the process id in the file
  double begin_seconds_ = 0, last_end_ = 0;
  std::unordered_map<RequestId, uint32_t> slots_;  // where each request was last
};

}  // namespace hearth
