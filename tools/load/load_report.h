// The results of a load, as numbers, JSON, a table and a picture. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "tools/load/load_run.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/summary.h"

namespace hearth {

struct LoadError {
  uint64_t count = 0;
  std::string example;  // what the server or the system said about the first one
};

struct LoadReport {
  std::string label;  // "64 clients", "8 requests/s"
  uint64_t requests = 0, completed = 0, failed = 0, refused = 0, unfinished = 0;
  uint64_t refusals = 0;           // replies with 429 or 503, most of which were retried
  // Requests with tokens that the server counted, and those whose chunks were counted instead.
  uint64_t counted_by_server = 0, counted_by_chunks = 0;
  uint64_t prompt_tokens = 0, generated_tokens = 0;
  double makespan_seconds = 0;  // from the first arrival to the last token
  double throughput_tokens_per_s = 0;
  double requests_per_s = 0;  // completed ones
  double goodput = 0;         // requests per second that met the goal
  uint64_t met_goal = 0;
  Summary ttft, tpot, e2e;  // seconds, over requests
  Summary tbt;              // seconds, over all chunks but the first of each request
  Summary worst_gap;        // the longest time between two chunks of a request, over requests
  double longest_gap = 0;
  std::map<std::string, LoadError> errors;  // by kind
  bool interrupted = false;
};

LoadReport make_load_report(const LoadRun& run, const ServiceGoal& goal, std::string label);

nlohmann::json to_json(const LoadReport& report);
// The times of every request, in the trace's order.
nlohmann::json requests_to_json(const LoadRun& run);

// One row per number, one column per report, and below it a line for each kind of error.
std::string format_load(std::span<const LoadReport> reports, const ServiceGoal& goal);

// An SVG file with a row per report. REQUIRES: there is a report.
std::string plot_load(std::span<const LoadReport> reports, const ServiceGoal& goal,
                      const std::string& server, const std::string& trace);

}  // namespace hearth
