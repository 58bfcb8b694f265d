// Writes steps as a trace for chrome://tracing and ui.perfetto.dev. Each run is a process with a
// track for the GPU, one track per sequence slot, and counters. Times count from the start of each
// run, so that runs line up below each other.
//
// The file is valid JSON after every write, unless the disk is full: then it is removed. One thread
// at a time.
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
  // Writes the rest. Errors are lost then; call finish() to see them.
  ~PerfettoTrace();
  PerfettoTrace(const PerfettoTrace&) = delete;
  PerfettoTrace& operator=(const PerfettoTrace&) = delete;

  // Starts a run of this name. `begin_seconds` on the engine's clock is time 0 of its steps.
  void begin_run(std::string_view name, uint32_t slots, double begin_seconds);
  // REQUIRES: begin_run() was called, and steps are added in order.
  void add(const StepRecord& record);
  // Writes the rest. Fails if anything could not be written; there is no file then. `more` is a key
  // and its value to be added to the file's object: "\"name\":[1,2]". Nothing can be added after it.
  Status finish(std::string_view more = {});

 private:
  explicit PerfettoTrace(std::string path) : path_(std::move(path)) {}
  void event(std::string_view fields);
  void name_track(uint32_t track, std::string_view name);
  void mark(RequestId request, std::string_view name, double seconds);
  double microseconds(double seconds) const { return (seconds - begin_seconds_) * 1e6; }
  void flush();
  // Removes the unfinished file.
  void give_up(int error);

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;  // null once writing failed
  std::string buffer_;
  std::string failure_;  // why writing failed
  bool first_event_ = true;
  uint32_t run_ = 0;  // the process id in the file
  double begin_seconds_ = 0, last_end_ = 0;
  std::unordered_map<RequestId, uint32_t> slots_;  // the slot each request had last
};

}  // namespace hearth
