// hearth replay: runs a request trace on the real engine under one or more scheduling policies, or
// under one policy with several limits, and reports how each did. With --simulate the engine runs
// over a modelled device in virtual time.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/session.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/commands/policy_options.h"
#include "tools/replay/device_price.h"
#include "tools/replay/machine_load.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/perfetto_trace.h"
#include "tools/replay/policy_spec.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_plot.h"
#include "tools/replay/replay_progress.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_setting.h"
#include "tools/replay/replay_target.h"
#include "tools/replay/sweep.h"
#include "tools/replay/sweep_report.h"
#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

constexpr uint64_t kPromptSeed = 1;

class ReplayCommand : public Command {
 public:
  ReplayCommand()
      : Command(CommandGroup::kMeasure, "replay", "Run a request trace under scheduling policies") {
  }

  void declare(Options& options) override {
    constexpr double kPositive = std::numeric_limits<double>::min();
    options.example("hearth replay synthetic:rate=4,n=100 --compare static,continuous");
    options.example(
        "hearth replay synthetic:rate=40,n=200,gen=8..120 --compare static,continuous --simulate");
    options.example(
        "hearth replay synthetic:n=64 --compare continuous,continuous+preemption=swap --kv-blocks "
        "64");
    options.example(
        "hearth replay synthetic:rate=20 --sweep max-seqs=1..32 --slo ttft=1,tbt=0.1 --plot a.svg");
    options.example("hearth replay trace.csv --limit 200 --trace steps.json");
    options
        .add("TRACE", &trace_name_,
             "An Azure CSV or Mooncake JSONL file, or "
             "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=0,seed=1")
        .required()
        .check(check_trace);
    options.group("Trace");
    options.add("--speed X", &speed_, "Requests arrive X times as fast")
        .range(kPositive, 1e9)
        .advanced();
    options.add("--ideal", &ideal_, "All requests arrive at once");
    options.add("--limit N", &limit_, "Only the first N requests; 0 takes all");
    options.add("--length-scale X", &length_scale_, "Multiply all lengths by X")
        .range(kPositive, 1e9)
        .advanced();
    options.group("Scheduling");
    declare_policy(options);
    max_sequences_ =
        &options.add("--max-seqs N", &model_.session.max_sequences, "Maximum sequences in a batch")
             .range(1, 4096);
    max_step_tokens_ = &options
                            .add("--max-step-tokens N", &model_.session.max_step_tokens,
                                 "Maximum tokens per step; 0 picks what suits the device")
                            .range(0, 1u << 20);
    options
        .add("--sweep LIMIT=LIST", &sweep_text_,
             "Run once per value of max-seqs or max-step-tokens, as in max-seqs=1,2,4 or 1..64, "
             "and find the best under --slo")
        .check(check_with(parse_sweep))
        .excludes(options.at("--compare"));
    options.check([this] { return sweep_conflict(); });
    options.group("Output");
    options
        .add("--slo GOAL", &goal_text_,
             "Service-level objective in seconds, which goodput counts and the best point of "
             "--sweep meets at p99")
        .check(check_with(parse_service_goal));
    options
        .add("--price MONEY", &price_text_,
             "What the device costs per hour, as in 2.5/h, to report the cost of tokens")
        .check(check_with(parse_price_per_hour))
        .advanced();
    options.add("--plot FILE.svg", &plot_path_, "Draw the comparison or the sweep as an SVG file")
        .check(check_plot_name);
    options.add("--trace FILE", &perfetto_path_, "Write a Chrome/Perfetto trace")
        .check(check_file_name);
    const Option& json = add_json_option(options, &json_);
    options.add("--requests", &list_requests_, "With --json, add the times of every request")
        .needs(json)
        .advanced();
    model_.declare(options);
    Option& simulate = options.add(
        "--simulate", &simulate_,
        "Simulate a GPU in virtual time: needs no model and gives the same numbers everywhere");
    for (const char* name : {"--model", "--device", "--deterministic"})
      simulate.excludes(options.at(name));
  }

  Status run() override {
    const Status status = run_all();
    // Now, and not when the program's globals are destroyed: some drivers are gone by then.
    target_.reset();
    return status;
  }

 private:
  Status run_all() {
    HEARTH_ASSIGN(trace_, read_trace(trace_name_, limit_));
    HEARTH_ASSIGN(goal_, parse_service_goal(goal_text_));
    HEARTH_TRY(read_options());
    HEARTH_TRY(choose_policies());
    if (length_scale_ != 1) scale_lengths(trace_, length_scale_);
    if (ideal_)
      arrive_at_once(trace_);
    else
      speed_up(trace_, speed_);
    model_.session.max_queue =
        std::max(model_.session.max_queue, static_cast<uint32_t>(trace_.requests.size()));
    setting_.trace = trace_name_;
    HEARTH_TRY(open_target());
    fit_trace();
    HEARTH_TRY(plan_replays());
    if (!plot_path_.empty()) HEARTH_TRY(check_writable(plot_path_));
    if (!perfetto_path_.empty()) {
      HEARTH_ASSIGN(perfetto_, PerfettoTrace::create(perfetto_path_));
    }
    HEARTH_TRY(warm_up());
    for (size_t i = 0; i < replays_.size(); ++i) HEARTH_TRY(measure(i));
    if (perfetto_) HEARTH_TRY(perfetto_->finish());
    if (!plot_path_.empty()) HEARTH_TRY(write_plot(plot_path_, plot()));
    if (json_)
      print_json();
    else
      print_table();
    if (const std::string warning = busy_warning(loads_); !warning.empty())
      fmt::print(stderr, "hearth: {}\n", warning);
    return {};
  }

  static std::string check_trace(const std::string& text) {
    if (!text.starts_with(kSyntheticScheme)) return {};
    const Result<Trace> trace = make_synthetic_trace(text, 1);
    return trace.ok() ? std::string() : trace.error().message;
  }
  // For Option::check(): what the parser says about a value.
  template <class T>
  static Option::Check check_with(Result<T> (*parse)(std::string_view)) {
    return [parse](const std::string& text) {
      const Result<T> result = parse(text);
      return result.ok() ? std::string() : result.error().message;
    };
  }

  void declare_policy(Options& options) {
    const std::vector<std::string> names = named_policies();
    const Option& one =
        options
            .add("--policy NAME", &policy_name_,
                 fmt::format("Scheduling policy, also with switches as in --compare: {}",
                             fmt::join(names, ", ")))
            .check(check_with(parse_policy_spec));
    options
        .add("--compare LIST", &compare_,
             "Compare several policies, also with switches changed, as in "
             "static,continuous,continuous+kv=reserve; --help-all lists the switches")
        .separator(',')
        .check(check_with(parse_policy_spec))
        .excludes(one);
    switches_.declare(options);
  }

  // A limit cannot be fixed and swept.
  std::string sweep_conflict() const {
    if (sweep_text_.empty()) return {};
    const Result<Sweep> sweep = parse_sweep(sweep_text_);
    const Option& fixed =
        sweep->limit == SweptLimit::kMaxSequences ? *max_sequences_ : *max_step_tokens_;
    return fixed.given()
               ? fmt::format("--{0} cannot be combined with --sweep {0}", sweep->parameter())
               : std::string();
  }

  Status read_options() {
    if (!price_text_.empty()) {
      HEARTH_ASSIGN(setting_.price_per_hour, parse_price_per_hour(price_text_));
    }
    if (sweep_text_.empty()) return {};
    HEARTH_ASSIGN(setting_.sweep, parse_sweep(sweep_text_));
    // The device is set up for the largest value; replays of smaller ones use a part of it.
    const bool sequences = setting_.sweep->limit == SweptLimit::kMaxSequences;
    (sequences ? model_.session.max_sequences : model_.session.max_step_tokens) =
        setting_.sweep->largest();
    return {};
  }

  // The named policies with the switches that were given as options, and then with their own.
  Status choose_policies() {
    std::vector<std::string> names = compare_;
    if (names.empty()) names.push_back(policy_name_);
    for (const std::string& name : names) {
      HEARTH_ASSIGN(const PolicySpec spec, parse_policy_spec(name));
      PlannedReplay replay{.label = name, .policy = {}, .limits = {}};
      HEARTH_ASSIGN(const Policy policy,
                    switches_.apply(model_.before_switches(spec.base), replay.label,
                                    [&](std::string_view each) { return spec.sets(each); }));
      replay.policy = spec.apply(policy);
      model_.take_policy(replay.policy);
      replays_.push_back(std::move(replay));
    }
    return {};
  }

  // Fills in the limits, and turns the policy of a sweep into one replay per value.
  Status plan_replays() {
    for (PlannedReplay& replay : replays_) replay.limits = setting_.limits;
    if (!setting_.sweep) return {};
    const Sweep& sweep = *setting_.sweep;
    if (const uint32_t most = sweep.value_in(setting_.limits); most < sweep.largest())
      return Error{ErrorKind::kInvalid,
                   fmt::format("{}={} is more than the {} that this model and device allow",
                               sweep.parameter(), sweep.largest(), most)};
    const PlannedReplay swept = std::exchange(replays_, {}).front();
    for (const uint32_t value : sweep.values) {
      replays_.push_back(swept);
      replays_.back().label += fmt::format(" {}={}", sweep.parameter(), value);
      replays_.back().limits = sweep.at(value, setting_.limits);
    }
    swept_label_ = swept.label;
    return {};
  }

  Status open_target() {
    const SessionOptions& wanted = model_.session;
    if (simulate_) {
      ModelledDevice device;
      if (model_.session_options().kv == KvFormat::kQ8_0) device.bytes_per_kv_value = 34.0 / 32;
      target_ = make_simulated_target(device, {.max_sequences = wanted.max_sequences,
                                               .max_step_tokens = wanted.max_step_tokens,
                                               .context = wanted.context,
                                               .kv_blocks = wanted.kv_blocks,
                                               .swap_bytes = wanted.swap_bytes,
                                               .max_queue = wanted.max_queue});
    } else {
      const auto start = std::chrono::steady_clock::now();
      HEARTH_ASSIGN(std::unique_ptr<Session> session, model_.open());
      overhead_.loading_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      target_ = make_device_target(std::move(session));
    }
    target_->describe(setting_);
    return {};
  }

  // Cuts requests that are longer than a sequence may be, and makes up the prompts.
  void fit_trace() {
    const SchedulerLimits& limits = setting_.limits;
    const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
    setting_.longest = static_cast<uint32_t>(std::min<uint64_t>(limits.context, pool_tokens));
    setting_.clipped = clip_lengths(trace_, setting_.longest);
    const PromptMaker maker(target_->text_ids(), kPromptSeed);
    for (size_t i = 0; i < trace_.requests.size(); ++i)
      prompts_.push_back(maker.make(trace_.requests[i], i));
  }

  Status warm_up() {
    Progress progress("warming up", ProgressOutput::standard_error(json_));
    return target_->prepare(replays_,
                            {.trace = trace_, .prompts = prompts_, .begin = {}, .step = {}},
                            progress, overhead_);
  }

  Status measure(size_t index) {
    const PlannedReplay& planned = replays_[index];
    std::string title = planned.label;
    if (replays_.size() > 1) title += fmt::format(" ({} of {})", index + 1, replays_.size());
    ReplayProgress progress(std::move(title), trace_, ProgressOutput::standard_error(json_));
    ReplayInput input{.trace = trace_, .prompts = prompts_, .begin = {}, .step = {}};
    input.step = [&](const StepRecord& record) {
      progress.add(record);
      if (perfetto_) perfetto_->add(record);
    };
    if (perfetto_)
      input.begin = [&](double begin) {
        perfetto_->begin_run(planned.label, planned.limits.max_sequences, begin);
      };
    HEARTH_ASSIGN(const ReplayRun run, target_->replay(planned, input));
    if (run.cpu) loads_.push_back({planned.label, *run.cpu});
    ReplayReport report = make_report(run, goal_, setting_.price_per_hour);
    report.policy = setting_.sweep ? swept_label_ : planned.label;
    report.switches = describe(planned.policy);
    if (list_requests_) request_lists_.push_back(requests_to_json(run));
    reports_.push_back(std::move(report));
    return {};
  }

  std::vector<SweepPoint> sweep_points() const {
    std::vector<SweepPoint> points;
    for (size_t i = 0; i < reports_.size(); ++i)
      points.push_back({setting_.sweep->values[i], reports_[i]});
    return points;
  }

  std::string plot() const {
    return setting_.sweep ? plot_sweep(setting_, sweep_points(), goal_)
                          : plot_comparison(setting_, reports_, goal_);
  }

  void print_json() const {
    nlohmann::json result = to_json(setting_, goal_);
    if (!simulate_) result["not_measured"] = to_json(overhead_);
    nlohmann::json list = nlohmann::json::array();
    if (setting_.sweep) {
      result["sweep"] = to_json(*setting_.sweep, sweep_points(), goal_);
      list = std::move(result["sweep"]["points"]);
    } else {
      for (const ReplayReport& report : reports_) list.push_back(to_json(report));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (i < loads_.size()) list[i]["other_programs_cpu_share"] = loads_[i].use.others;
      if (list_requests_) list[i]["request_times"] = request_lists_[i];
    }
    (setting_.sweep ? result["sweep"]["points"] : result["policies"]) = std::move(list);
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void print_table() const {
    fmt::print("{}\n", format_heading(setting_, trace_));
    if (setting_.sweep) {
      const std::vector<SweepPoint> points = sweep_points();
      fmt::print("{}; times in ms\n{}\n{}", swept_label_,
                 format_sweep(*setting_.sweep, points, goal_),
                 describe_best(*setting_.sweep, points, goal_));
    } else {
      fmt::print("{}\n{}", format_table(reports_, goal_), table_legend(reports_));
    }
    if (simulate_) return;
    double measured = 0;
    for (const ReplayReport& report : reports_) measured += report.makespan_seconds;
    fmt::print("{}", format_overhead(overhead_, measured));
  }

  std::string trace_name_, policy_name_ = "continuous", goal_text_ = "ttft=1,tbt=0.1";
  std::string perfetto_path_, plot_path_, sweep_text_, price_text_;
  std::vector<std::string> compare_;
  PolicySwitchOptions switches_;
  ModelOptionsGroup model_;
  double speed_ = 1, length_scale_ = 1;
  size_t limit_ = 0;
  const Option *max_sequences_ = nullptr, *max_step_tokens_ = nullptr;
  bool ideal_ = false, json_ = false, list_requests_ = false, simulate_ = false;

  Trace trace_;
  ServiceGoal goal_;
  std::vector<PlannedReplay> replays_;
  std::string swept_label_;  // the policy of a sweep
  ReplaySetting setting_;
  std::unique_ptr<ReplayTarget> target_;
  std::vector<std::vector<TokenId>> prompts_;
  std::unique_ptr<PerfettoTrace> perfetto_;
  ReplayOverhead overhead_;
  std::vector<PolicyLoad> loads_;  // empty in a simulation, and where the system does not say
  std::vector<ReplayReport> reports_;
  std::vector<nlohmann::json> request_lists_;
};

ReplayCommand replay_command;

}  // namespace
}  // namespace hearth
