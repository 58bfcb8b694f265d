// What hearth bench prints: for people, results line by line as they come; with --json, one object
// at the end. Progress is on stderr meanwhile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "tools/bench/kernel_bench.h"
#include "tools/progress.h"

namespace hearth {

class BenchReport {
 public:
  explicit BenchReport(bool json) : json_(json) {}

  bool is_json() const { return json_; }
  Progress progress(std::string title = "timing") const {
    return Progress(std::move(title), ProgressOutput::standard_error(json_));
  }

  // A field of the JSON object, besides the results.
  void set(const std::string& name, nlohmann::json value) { object_[name] = std::move(value); }
  // Measures what the results are compared with, and reports it.
  Result<Ceilings> measure_ceilings(KernelBench& bench, const DeviceCaps& caps);

  // A result of any type that has print() and to_json(). REQUIRES: no progress is shown.
  template <class T>
  void add(const T& result) {
    if (!json_) print(result);
    results_.push_back(to_json(result));
  }
  size_t results() const { return results_.size(); }

  // Prints the object, whose field `name` has the results. Nothing happens without --json.
  void end(const std::string& name);
  // The same for an object without a list of results.
  void end() const;

 private:
  const bool json_;
  nlohmann::json object_ = nlohmann::json::object();
  nlohmann::json results_ = nlohmann::json::array();
};

}  // namespace hearth
