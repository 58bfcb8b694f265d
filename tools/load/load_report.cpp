#include "tools/load/load_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/replay/bar_plot.h"

namespace hearth {
namespace {

nlohmann::json summary_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"p50", summary.p50}, {"p90", summary.p90}, {"p99", summary.p99}};
}

struct LoadRow {
  std::string name;
  std::function<std::string(const LoadReport&)> cell;
};

void add_load_times(std::vector<LoadRow>& rows, const std::string& name,
                    Summary LoadReport::*times) {
  const auto add = [&](const char* which, double Summary::*value) {
    rows.push_back({fmt::format("{}, {}, ms", name, which), [=](const LoadReport& report) {
                      return fmt::format("{:.1f}", report.*times.*value * 1000);
                    }});
  };
  add("mean", &Summary::mean);
  add("p50", &Summary::p50);
  add("p90", &Summary::p90);
  add("p99", &Summary::p99);
}

// A count that is left out if it is 0 everywhere.
void add_load_count(std::vector<LoadRow>& rows, std::span<const LoadReport> reports,
                    const std::string& name, uint64_t LoadReport::*count) {
  if (std::ranges::all_of(reports, [=](const LoadReport& one) { return one.*count == 0; })) return;
  rows.push_back({name, [=](const LoadReport& report) { return std::to_string(report.*count); }});
}

std::vector<LoadRow> load_rows(std::span<const LoadReport> reports, const ServiceGoal& goal) {
  std::vector<LoadRow> rows;
  const auto add_number = [&](const std::string& name, const char* form,
                              double LoadReport::*number) {
    rows.push_back({name, [=](const LoadReport& report) {
                      return fmt::format(fmt::runtime(form), report.*number);
                    }});
  };
  add_number("throughput, tokens/s", "{:.1f}", &LoadReport::throughput_tokens_per_s);
  add_number(fmt::format("goodput (TTFT {} s, TBT {} s), requests/s", goal.time_to_first_token,
                         goal.time_between_tokens),
             "{:.2f}", &LoadReport::goodput);
  add_number("completed, requests/s", "{:.2f}", &LoadReport::requests_per_s);
  add_number("makespan, s", "{:.2f}", &LoadReport::makespan_seconds);
  add_load_times(rows, "TTFT", &LoadReport::ttft);
  add_load_times(rows, "TBT", &LoadReport::tbt);
  add_load_times(rows, "TPOT", &LoadReport::tpot);
  add_load_times(rows, "end to end", &LoadReport::e2e);
  add_load_times(rows, "worst gap of a stream", &LoadReport::worst_gap);
  rows.push_back({"worst gap of all, ms", [](const LoadReport& report) {
                    return fmt::format("{:.1f}", report.longest_gap * 1000);
                  }});
  add_load_count(rows, reports, "prompt tokens", &LoadReport::prompt_tokens);
  add_load_count(rows, reports, "generated tokens", &LoadReport::generated_tokens);
  add_load_count(rows, reports, "requests completed", &LoadReport::completed);
  add_load_count(rows, reports, "requests that failed", &LoadReport::failed);
  add_load_count(rows, reports, "requests refused for good (429, 503)", &LoadReport::refused);
  add_load_count(rows, reports, "replies of 429 and 503", &LoadReport::refusals);
  add_load_count(rows, reports, "requests not finished", &LoadReport::unfinished);
  return rows;
}

std::string load_notes(std::span<const LoadReport> reports) {
  uint64_t by_server = 0, by_chunks = 0;
  for (const LoadReport& report : reports) {
    by_server += report.counted_by_server;
    by_chunks += report.counted_by_chunks;
  }
  std::string text;
  if (by_chunks > 0 && by_server == 0)
    text =
        "The server did not report its usage, so tokens are chunks with text: if a chunk has "
        "several tokens, there were more.\n";
  else if (by_chunks > 0)
    text = fmt::format(
        "The server did not report the usage of {} of {} answers, whose tokens are chunks with "
        "text: if a chunk has several tokens, there were more.\n",
        by_chunks, by_server + by_chunks);
  else if (by_server > 0)
    text =
        "Tokens are counted by the server. TBT and gaps are between two chunks with text, which "
        "may have several tokens.\n";
  for (const LoadReport& report : reports) {
    const std::string label = reports.size() > 1 ? report.label + ": " : std::string();
    if (report.interrupted) text += label + "interrupted; these are the numbers so far\n";
    for (const auto& [kind, error] : report.errors)
      text +=
          fmt::format("{}{} request{}: {}{}{}\n", label, error.count, error.count == 1 ? "" : "s",
                      kind, error.example.empty() ? "" : ": ", error.example);
  }
  return text;
}

}  // namespace

LoadReport make_load_report(const LoadRun& run, const ServiceGoal& goal, std::string label) {
  using State = LoadedRequest::State;
  LoadReport report;
  report.label = std::move(label);
  report.interrupted = run.interrupted;
  std::vector<double> ttft, tbt, tpot, e2e, gaps;
  double begin = run.end, end = 0;
  for (const LoadedRequest& request : run.requests) {
    ++report.requests;
    report.refusals += request.refusals;
    switch (request.state) {
      case State::kCompleted:
        ++report.completed;
        if (goal.met_by(request.timing)) ++report.met_goal;
        e2e.push_back(request.end - request.timing.arrival);
        break;
      case State::kFailed:
        ++report.failed;
        break;
      case State::kRefused:
        ++report.refused;
        break;
      case State::kUnfinished:
        ++report.unfinished;
        break;
    }
    if (!request.error.empty()) {
      LoadError& error = report.errors[request.error];
      if (error.count++ == 0) error.example = request.error_detail;
    }
    const std::vector<double>& times = request.timing.token_times;
    if (request.state != State::kUnfinished || !times.empty())
      begin = std::min(begin, request.timing.arrival);
    if (request.tokens > 0) {
      report.prompt_tokens += request.prompt_tokens;
      ++(request.server_counted ? report.counted_by_server : report.counted_by_chunks);
    }
    report.generated_tokens += request.tokens;
    if (times.empty()) continue;
    end = std::max(end, times.back());
    ttft.push_back(request.timing.time_to_first_token());
    for (size_t i = 1; i < times.size(); ++i) tbt.push_back(times[i] - times[i - 1]);
    if (times.size() > 1) {
      gaps.push_back(request.timing.longest_gap());
      report.longest_gap = std::max(report.longest_gap, gaps.back());
      // The first chunk may have had more than one token, so this is at most the time per token.
      if (request.tokens > 1)
        tpot.push_back((times.back() - times.front()) / static_cast<double>(request.tokens - 1));
    }
  }
  report.makespan_seconds = std::max(end - begin, 0.0);
  if (report.makespan_seconds > 0) {
    const auto per_second = [&](uint64_t count) {
      return static_cast<double>(count) / report.makespan_seconds;
    };
    report.throughput_tokens_per_s = per_second(report.generated_tokens);
    report.requests_per_s = per_second(report.completed);
    report.goodput = per_second(report.met_goal);
  }
  report.ttft = summarize(std::move(ttft));
  report.tbt = summarize(std::move(tbt));
  report.tpot = summarize(std::move(tpot));
  report.e2e = summarize(std::move(e2e));
  report.worst_gap = summarize(std::move(gaps));
  return report;
}

nlohmann::json to_json(const LoadReport& report) {
  nlohmann::json worst_gap = summary_json(report.worst_gap);
  worst_gap["max"] = report.longest_gap;
  nlohmann::json errors = nlohmann::json::object();
  for (const auto& [kind, error] : report.errors)
    errors[kind] = {{"count", error.count}, {"example", error.example}};
  return {{"load", report.label},
          {"requests", report.requests},
          {"completed", report.completed},
          {"failed", report.failed},
          {"refused", report.refused},
          {"unfinished", report.unfinished},
          {"interrupted", report.interrupted},
          {"refusals", report.refusals},
          {"errors", errors},
          {"prompt_tokens", report.prompt_tokens},
          {"generated_tokens", report.generated_tokens},
          {"tokens_from", report.counted_by_chunks == 0   ? "usage"
                          : report.counted_by_server == 0 ? "chunks"
                                                          : "usage and chunks"},
          {"makespan_seconds", report.makespan_seconds},
          {"throughput_tokens_per_s", report.throughput_tokens_per_s},
          {"requests_per_s", report.requests_per_s},
          {"goodput", report.goodput},
          {"met_goal", report.met_goal},
          {"ttft_seconds", summary_json(report.ttft)},
          {"tbt_seconds", summary_json(report.tbt)},
          {"tpot_seconds", summary_json(report.tpot)},
          {"e2e_seconds", summary_json(report.e2e)},
          {"worst_gap_seconds", std::move(worst_gap)}};
}

nlohmann::json requests_to_json(const LoadRun& run) {
  constexpr const char* kStates[] = {"unfinished", "completed", "refused", "failed"};
  nlohmann::json list = nlohmann::json::array();
  for (const LoadedRequest& request : run.requests) {
    nlohmann::json entry = {{"state", kStates[static_cast<size_t>(request.state)]},
                            {"arrival_seconds", request.timing.arrival},
                            {"prompt_tokens", request.prompt_tokens},
                            {"tokens", request.tokens},
                            {"refusals", request.refusals}};
    if (!request.error.empty()) entry["error"] = request.error;
    if (!request.timing.token_times.empty()) {
      entry["ttft_seconds"] = request.timing.time_to_first_token();
      entry["e2e_seconds"] = request.timing.end_to_end();
      entry["longest_gap_seconds"] = request.timing.longest_gap();
    }
    list.push_back(std::move(entry));
  }
  return list;
}

std::string format_load(std::span<const LoadReport> reports, const ServiceGoal& goal) {
  const std::vector<LoadRow> rows = load_rows(reports, goal);
  size_t name_width = 0;
  for (const LoadRow& row : rows) name_width = std::max(name_width, row.name.size());
  const auto width = [](const LoadReport& report) {
    constexpr size_t kLeast = 10;
    return std::max(kLeast, report.label.size());
  };
  std::string table = fmt::format("{:<{}}", "", name_width);
  for (const LoadReport& report : reports)
    table += fmt::format("  {:>{}}", report.label, width(report));
  table += '\n';
  for (const LoadRow& row : rows) {
    table += fmt::format("{:<{}}", row.name, name_width);
    for (const LoadReport& report : reports)
      table += fmt::format("  {:>{}}", row.cell(report), width(report));
    table += '\n';
  }
  return table + load_notes(reports);
}

std::string plot_load(std::span<const LoadReport> reports, const ServiceGoal& goal,
                      const std::string& server, const std::string& trace) {
  BarPlot plot{.title = reports.size() > 1 ? "Loads compared"
                                           : fmt::format("Load of {}", reports.front().label),
               .subtitle = {trace, server},
               .goal = goal};
  const auto bars = [&](const char* colour, auto value) {
    BarSeries series{.colour = colour, .values = {}};
    for (const LoadReport& report : reports) series.values.push_back(value(report));
    return series;
  };
  const auto times = [&](Summary LoadReport::*summary) {
    return std::vector<BarSeries>{
        bars("p50", [=](const LoadReport& report) { return (report.*summary).p50; }),
        bars("p99", [=](const LoadReport& report) { return (report.*summary).p99; })};
  };
  for (const LoadReport& report : reports) plot.rows.push_back(report.label);
  plot.panels = {
      {.title = "Throughput, tokens/s",
       .series = {bars("plain", [](const auto& one) { return one.throughput_tokens_per_s; })}},
      {.title = "Goodput, requests/s",
       .series = {bars("plain", [](const auto& one) { return one.goodput; })}},
      {.title = "Time to first token",
       .series = times(&LoadReport::ttft),
       .is_time = true,
       .goal = goal.time_to_first_token},
      {.title = "Time between tokens",
       .series = times(&LoadReport::tbt),
       .is_time = true,
       .goal = goal.time_between_tokens},
      {.title = "Worst gap", .series = times(&LoadReport::worst_gap), .is_time = true}};
  return draw_bars(plot);
}

}  // namespace hearth
