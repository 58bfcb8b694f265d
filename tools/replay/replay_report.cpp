#include "tools/replay/replay_report.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tools/replay/device_price.h"

namespace hearth {
namespace {

nlohmann::json to_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"p50", summary.p50}, {"p90", summary.p90}, {"p99", summary.p99}};
}

using Cell = std::function<std::string(const ReplayReport&)>;

struct Row {
  std::string name;
  Cell cell;
};

void add_times(std::vector<Row>& rows, const std::string& name, Summary ReplayReport::*times) {
  const auto add = [&](const char* which, double Summary::*value) {
    rows.push_back({fmt::format("{}, {}, ms", name, which), [=](const ReplayReport& report) {
                      return fmt::format("{:.1f}", report.*times.*value * 1000);
                    }});
  };
  add("mean", &Summary::mean);
  add("p50", &Summary::p50);
  add("p90", &Summary::p90);
  add("p99", &Summary::p99);
}

void add_share(std::vector<Row>& rows, const std::string& name, double ReplayReport::*share) {
  rows.push_back({name, [=](const ReplayReport& report) {
                    return fmt::format("{:.1f}", report.*share * 100);
                  }});
}

void add_count(std::vector<Row>& rows, const std::string& name, uint64_t ReplayReport::*count) {
  rows.push_back({name, [=](const ReplayReport& report) { return std::to_string(report.*count); }});
}

// Whether a request gets all of its tokens when its batch ends.
bool delivers_with_batch(const ReplayReport& report) {
  return report.switches.find("admission=request") != std::string::npos &&
         report.switches.find("delivery=with-batch") != std::string::npos;
}

bool any_swaps(std::span<const ReplayReport> reports) {
  return std::ranges::any_of(reports, [](const ReplayReport& report) {
    return report.swaps.out_bytes + report.swaps.in_bytes > 0;
  });
}

bool any_cost(std::span<const ReplayReport> reports) {
  return std::ranges::any_of(reports, [](const ReplayReport& report) {
    return report.cost_per_million_tokens.has_value();
  });
}

void add_swaps(std::vector<Row>& rows) {
  const auto add_megabytes = [&](const char* name, uint64_t SwapTraffic::*bytes) {
    rows.push_back({name, [=](const ReplayReport& report) {
                      return fmt::format("{:.1f}", static_cast<double>(report.swaps.*bytes) * 1e-6);
                    }});
  };
  add_megabytes("swapped out, MB", &SwapTraffic::out_bytes);
  add_megabytes("swapped in, MB", &SwapTraffic::in_bytes);
  rows.push_back({"swap rate, GB/s", [](const ReplayReport& report) {
                    const std::optional<double> rate = report.swap_bytes_per_s();
                    return rate ? fmt::format("{:.2f}", *rate * 1e-9) : std::string("-");
                  }});
}

// Rows that would say nothing about any of the reports are left out.
std::vector<Row> table_rows(std::span<const ReplayReport> reports, const ServiceGoal& goal) {
  std::vector<Row> rows;
  rows.push_back({"throughput, tokens/s", [](const ReplayReport& report) {
                    return fmt::format("{:.1f}", report.throughput_tokens_per_s);
                  }});
  rows.push_back(
      {fmt::format("goodput (TTFT {} s, TBT {} s), requests/s", goal.time_to_first_token,
                   goal.time_between_tokens),
       [](const ReplayReport& report) { return fmt::format("{:.2f}", report.goodput); }});
  rows.push_back({"makespan, s", [](const ReplayReport& report) {
                    return fmt::format("{:.2f}", report.makespan_seconds);
                  }});
  if (any_cost(reports))
    rows.push_back({"cost per million generated tokens", [](const ReplayReport& report) {
                      const std::optional<double>& cost = report.cost_per_million_tokens;
                      return cost ? fmt::format("{:.4g}", *cost) : std::string("-");
                    }});
  add_times(rows, "TTFT", &ReplayReport::ttft);
  add_times(rows, "TBT", &ReplayReport::tbt);
  add_times(rows, "TPOT", &ReplayReport::tpot);
  add_times(rows, "end to end", &ReplayReport::e2e);
  add_share(rows, "GPU busy, % of the time", &ReplayReport::busy_share);
  add_share(rows, "occupancy, % of --max-seqs", &ReplayReport::occupancy);
  add_share(rows, "padding, % of computed rows", &ReplayReport::padding_share);
  add_share(rows, "KV blocks in use, % of the pool", &ReplayReport::kv_used_share);
  add_share(rows, "KV waste, % of allocated token places", &ReplayReport::kv_waste_share);
  rows.push_back({"KV waste, tokens per sequence", [](const ReplayReport& report) {
                    return fmt::format("{:.1f}", report.kv_waste_tokens_per_sequence);
                  }});
  add_share(rows, "KV blocks shared, % of the blocks in use", &ReplayReport::kv_shared_share);
  add_share(rows, "prefix cache hits, % of prompt tokens", &ReplayReport::prefix_hit_share);
  add_count(rows, "preemptions that recompute", &ReplayReport::preemptions_recompute);
  add_count(rows, "preemptions that swap", &ReplayReport::preemptions_swap);
  if (any_swaps(reports)) add_swaps(rows);
  add_count(rows, "steps", &ReplayReport::steps);
  add_count(rows, "failed requests", &ReplayReport::failed);
  if (std::ranges::any_of(reports, [](const ReplayReport& report) { return report.refused > 0; }))
    add_count(rows, "refused requests", &ReplayReport::refused);
  return rows;
}

}  // namespace

std::optional<double> ReplayReport::swap_bytes_per_s() const {
  const uint64_t bytes = swaps.out_bytes + swaps.in_bytes;
  if (bytes == 0 || swaps.seconds <= 0) return std::nullopt;
  return static_cast<double>(bytes) / swaps.seconds;
}

ReplayReport make_report(const ReplayRun& run, const ServiceGoal& goal, double price_per_hour) {
  ReplayReport report;
  std::vector<double> ttft, tbt, tpot, e2e;
  double end = run.begin;
  for (const RequestTiming& request : run.requests) {
    ++report.requests;
    if (request.failed) ++report.failed;
    if (request.refused) ++report.refused;
    if (goal.met_by(request)) ++report.met_goal;
    const std::vector<double>& times = request.token_times;
    report.generated_tokens += times.size();
    if (times.empty()) continue;
    end = std::max(end, times.back());
    ttft.push_back(request.time_to_first_token());
    e2e.push_back(request.end_to_end());
    for (size_t i = 1; i < times.size(); ++i) tbt.push_back(times[i] - times[i - 1]);
    if (times.size() > 1) tpot.push_back(request.time_per_output_token());
  }
  report.prompt_tokens = run.prompt_tokens;
  report.generated_tokens += run.untimed_tokens;
  report.makespan_seconds = end - run.begin;
  if (report.makespan_seconds > 0) {
    report.throughput_tokens_per_s =
        static_cast<double>(report.generated_tokens) / report.makespan_seconds;
    report.goodput = static_cast<double>(report.met_goal) / report.makespan_seconds;
  }
  report.ttft = summarize(std::move(ttft));
  report.tbt = summarize(std::move(tbt));
  report.tpot = summarize(std::move(tpot));
  report.e2e = summarize(std::move(e2e));
  if (run.query_tokens > 0)
    report.prefix_hit_share =
        static_cast<double>(run.hit_tokens) / static_cast<double>(run.query_tokens);
  if (price_per_hour > 0 && report.generated_tokens > 0)
    report.cost_per_million_tokens =
        cost_per_million_tokens(price_per_hour, report.makespan_seconds, report.generated_tokens);
  report.swaps = run.swaps;
  report.busy_share = run.steps.busy_share(run.begin);
  report.occupancy = run.steps.occupancy(run.max_sequences);
  report.padding_share = run.steps.padding_share();
  report.kv_used_share = run.steps.kv_used_share(run.pool_blocks);
  report.kv_waste_share = run.steps.kv_waste_share();
  report.kv_shared_share = run.steps.kv_shared_share();
  report.kv_waste_tokens_per_sequence = run.steps.wasted_tokens_per_sequence();
  report.preemptions_recompute = run.steps.preemptions_recompute;
  report.preemptions_swap = run.steps.preemptions_swap;
  report.steps = run.steps.steps;
  return report;
}

nlohmann::json to_json(const ReplayReport& report) {
  nlohmann::json json = {{"policy", report.policy},
                         {"switches", report.switches},
                         {"requests", report.requests},
                         {"failed", report.failed},
                         {"refused", report.refused},
                         {"prompt_tokens", report.prompt_tokens},
                         {"generated_tokens", report.generated_tokens},
                         {"makespan_seconds", report.makespan_seconds},
                         {"throughput_tokens_per_s", report.throughput_tokens_per_s},
                         {"ttft_seconds", to_json(report.ttft)},
                         {"tbt_seconds", to_json(report.tbt)},
                         {"tpot_seconds", to_json(report.tpot)},
                         {"e2e_seconds", to_json(report.e2e)},
                         {"goodput", report.goodput},
                         {"met_goal", report.met_goal},
                         {"busy_share", report.busy_share},
                         {"occupancy", report.occupancy},
                         {"padding_share", report.padding_share},
                         {"kv_used_share", report.kv_used_share},
                         {"kv_waste_share", report.kv_waste_share},
                         {"kv_waste_tokens_per_sequence", report.kv_waste_tokens_per_sequence},
                         {"kv_shared_share", report.kv_shared_share},
                         {"preemptions", report.preemptions()},
                         {"preemptions_recompute", report.preemptions_recompute},
                         {"preemptions_swap", report.preemptions_swap},
                         {"swapped_out_bytes", report.swaps.out_bytes},
                         {"swapped_in_bytes", report.swaps.in_bytes},
                         {"swap_seconds", report.swaps.seconds},
                         {"prefix_hit_share", report.prefix_hit_share},
                         {"steps", report.steps}};
  if (report.cost_per_million_tokens)
    json["cost_per_million_tokens"] = *report.cost_per_million_tokens;
  const std::optional<double> swap_rate = report.swap_bytes_per_s();
  json["swap_bytes_per_s"] = swap_rate ? nlohmann::json(*swap_rate) : nlohmann::json();
  return json;
}

nlohmann::json requests_to_json(const ReplayRun& run) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < run.requests.size(); ++i) {
    const RequestTiming& request = run.requests[i];
    nlohmann::json entry = {{"arrival_seconds", request.arrival - run.begin},
                            {"tokens", request.token_times.size()},
                            {"cached_tokens", run.cached_tokens[i]},
                            {"failed", request.failed},
                            {"refused", request.refused}};
    if (!request.token_times.empty()) {
      entry["ttft_seconds"] = request.time_to_first_token();
      entry["e2e_seconds"] = request.end_to_end();
      entry["longest_gap_seconds"] = request.longest_gap();
    }
    list.push_back(std::move(entry));
  }
  return list;
}

std::string table_legend(std::span<const ReplayReport> reports) {
  std::string text =
      "TTFT is the time to the first token, TBT the time between two tokens, TPOT the mean TBT of "
      "a "
      "request.\n"
      "Throughput, goodput and cost count from the first arrival to the last token. The GPU is "
      "busy "
      "while a step runs.\n";
  for (const ReplayReport& report : reports)
    if (delivers_with_batch(report))
      text += fmt::format(
          "{} delivers the tokens of a batch together when the batch ends: TTFT is the end-to-end "
          "time, and TBT is 0.\n",
          report.policy);
  if (any_swaps(reports))
    text += "The swap rate is bytes per second while blocks were moving, both ways together.\n";
  return text;
}

std::string format_table(std::span<const ReplayReport> reports, const ServiceGoal& goal) {
  const std::vector<Row> rows = table_rows(reports, goal);
  size_t name_width = 0;
  for (const Row& row : rows) name_width = std::max(name_width, row.name.size());
  std::vector<size_t> widths;
  std::string table = fmt::format("{:<{}}", "", name_width);
  for (const ReplayReport& report : reports) {
    constexpr size_t kLeast = 10;
    widths.push_back(std::max(kLeast, report.policy.size()));
    table += fmt::format("  {:>{}}", report.policy, widths.back());
  }
  table += '\n';
  for (const Row& row : rows) {
    table += fmt::format("{:<{}}", row.name, name_width);
    for (size_t i = 0; i < reports.size(); ++i)
      table += fmt::format("  {:>{}}", row.cell(reports[i]), widths[i]);
    table += '\n';
  }
  return table;
}

}  // namespace hearth
