// hearth replay: runs a request trace on the real engine under one or more scheduling policies, and
// reports how each did. With --simulate the engine runs over a modelled device in virtual time.
#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/session.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/commands/policy_options.h"
#include "tools/replay/machine_load.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/perfetto_trace.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_progress.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_runner.h"
#include "tools/replay/replay_setting.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"
#include "tools/replay/warm_up.h"

namespace hearth {
namespace {

constexpr uint64_t kPromptSeed = 1;

struct NamedPolicy {
  std::string label;
  Policy policy;
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class ReplayCommand : public Command {
 public:
  ReplayCommand()
      : Command(CommandGroup::kMeasure, "replay", "Run a request trace under scheduling policies") {
  }

  void declare(Options& options) override {
    constexpr double kPositive = std::numeric_limits<double>::min();
    options.example("hearth replay synthetic:rate=4,n=100 --compare static,continuous");
    options.example("hearth replay synthetic:rate=40,n=200 --compare static,continuous --simulate");
    options.example("hearth replay trace.csv --limit 200 --trace steps.json");
    options
        .add("TRACE", &trace_name_,
             "An Azure CSV or Mooncake JSONL file, or "
             "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=0,seed=1")
        .required()
        .check(check_trace);
    options.group("Trace");
    options.add("--speed X", &speed_, "Requests arrive X times as fast").range(kPositive, 1e9);
    options.add("--ideal", &ideal_, "All requests arrive at once");
    options.add("--limit N", &limit_, "Only the first N requests; 0 takes all");
    options.add("--length-scale X", &length_scale_, "Multiply all lengths by X")
        .range(kPositive, 1e9);
    options.group("Scheduling");
    declare_policy(options);
    options.add("--max-seqs N", &model_.session.max_sequences, "Maximum sequences in a batch")
        .range(1, 4096);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Maximum tokens per step; 0 picks what suits the device")
        .range(0, 1u << 20);
    options.group("Output");
    options
        .add("--slo GOAL", &goal_text_, "What a request must meet to count as goodput, in seconds")
        .check(check_goal);
    options.add("--trace FILE", &perfetto_path_, "Write a Chrome/Perfetto trace")
        .check(check_file_name);
    const Option& json = add_json_option(options, &json_);
    options.add("--requests", &list_requests_, "With --json, add the times of every request")
        .needs(json);
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
    session_.reset();
    return status;
  }

 private:
  Status run_all() {
    HEARTH_ASSIGN(trace_, read_trace(trace_name_, limit_));
    HEARTH_ASSIGN(goal_, parse_service_goal(goal_text_));
    HEARTH_TRY(choose_policies());
    if (length_scale_ != 1) scale_lengths(trace_, length_scale_);
    if (ideal_)
      arrive_at_once(trace_);
    else
      speed_up(trace_, speed_);
    model_.session.max_queue =
        std::max(model_.session.max_queue, static_cast<uint32_t>(trace_.requests.size()));
    setting_.trace = trace_name_;
    if (simulate_)
      set_up_model();
    else
      HEARTH_TRY(open_model());
    if (!perfetto_path_.empty()) {
      HEARTH_ASSIGN(perfetto_, PerfettoTrace::create(perfetto_path_));
    }
    if (!simulate_) HEARTH_TRY(warm_up_device());
    for (size_t i = 0; i < policies_.size(); ++i) HEARTH_TRY(measure(i));
    if (perfetto_) HEARTH_TRY(perfetto_->finish());
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
  static std::string check_goal(const std::string& text) {
    const Result<ServiceGoal> goal = parse_service_goal(text);
    return goal.ok() ? std::string() : goal.error().message;
  }

  void declare_policy(Options& options) {
    const std::vector<std::string> names = named_policies();
    const Option& one =
        options.add("--policy NAME", &policy_name_, "Scheduling policy").one_of(names);
    options.add("--compare LIST", &compare_, "Run several policies and compare them in one table")
        .separator(',')
        .one_of(names)
        .excludes(one);
    switches_.declare(options);
  }

  // The named policies, each with the switches that were given applied to it.
  Status choose_policies() {
    std::vector<std::string> names = compare_;
    if (names.empty()) names.push_back(policy_name_);
    for (const std::string& name : names) {
      NamedPolicy named{.label = name, .policy = {}};
      HEARTH_ASSIGN(named.policy,
                    switches_.apply(model_.before_switches(*named_policy(name)), named.label));
      model_.take_policy(named.policy);
      policies_.push_back(std::move(named));
    }
    return {};
  }

  void set_up_model() {
    const SessionOptions& wanted = model_.session;
    if (model_.session_options().kv == KvFormat::kQ8_0) device_.bytes_per_kv_value = 34.0 / 32;
    setting_.simulated = true;
    setting_.model = device_.model;
    setting_.device = device_.describe_card();
    setting_.limits = scheduler_limits(device_, {.max_sequences = wanted.max_sequences,
                                                 .max_step_tokens = wanted.max_step_tokens,
                                                 .context = wanted.context,
                                                 .kv_blocks = wanted.kv_blocks,
                                                 .swap_bytes = wanted.swap_bytes,
                                                 .max_queue = wanted.max_queue});
    fit_trace(text_token_ids(nullptr, device_.vocabulary));
  }

  Status open_model() {
    const Stopwatch watch;
    HEARTH_ASSIGN(session_, model_.open());
    overhead_.loading_seconds = watch.seconds();
    setting_.model = session_->file().name();
    setting_.device = session_->device().caps().name;
    setting_.limits = session_->engine_options().limits;
    fit_trace(text_token_ids(session_->tokenizer(), session_->model().config().vocabulary));
    return {};
  }

  // Cuts requests that are longer than a sequence may be, and makes up the prompts.
  void fit_trace(std::vector<TokenId> text_ids) {
    const SchedulerLimits& limits = setting_.limits;
    const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
    setting_.longest = static_cast<uint32_t>(std::min<uint64_t>(limits.context, pool_tokens));
    setting_.clipped = clip_lengths(trace_, setting_.longest);
    const PromptMaker maker(std::move(text_ids), kPromptSeed);
    for (size_t i = 0; i < trace_.requests.size(); ++i)
      prompts_.push_back(maker.make(trace_.requests[i], i));
  }

  Status warm_up_device() {
    const Stopwatch watch;
    std::vector<Policy> policies;
    for (const NamedPolicy& named : policies_) policies.push_back(named.policy);
    StepRunner& runner = session_->runner();
    // Some drivers compile a kernel only when it first runs, so a step with new kernels is run.
    WarmUpExecutor executor(runner, [&](const StepBatch& batch) -> Result<bool> {
      const size_t kernels = session_->pipelines().size();
      HEARTH_TRY(runner.prepare(batch));
      return session_->pipelines().size() > kernels;
    });
    Progress progress("warming up", ProgressOutput::standard_error(json_));
    HEARTH_TRY(warm_up(executor, session_->engine_options(), policies,
                       {.trace = trace_, .prompts = prompts_, .begin = {}, .step = {}}, progress));
    overhead_.warm_up_seconds = watch.seconds();
    overhead_.buckets = runner.recorded_steps();
    overhead_.kernels = session_->pipelines().size();
    return {};
  }

  // Every policy gets a new engine, with an empty prefix cache and counters at 0.
  Result<ReplayRun> replay(const NamedPolicy& named, const ReplayInput& input) {
    if (simulate_) return simulate_replay(device_, setting_.limits, named.policy, input);
    EngineOptions options = session_->engine_options();
    options.policy = named.policy;
    const std::optional<CpuCounters> before = read_cpu_counters();
    Result<ReplayRun> run = [&] {
      Engine engine(session_->runner(), session_->tokenizer(), options);
      return run_replay(engine, input);
    }();
    const std::optional<CpuCounters> after = read_cpu_counters();
    if (before && after) loads_.push_back({named.label, cpu_use(*before, *after)});
    return run;
  }

  Status measure(size_t index) {
    const NamedPolicy& named = policies_[index];
    std::string title = named.label;
    if (policies_.size() > 1) title += fmt::format(" ({} of {})", index + 1, policies_.size());
    ReplayProgress progress(std::move(title), trace_, ProgressOutput::standard_error(json_));
    ReplayInput input{.trace = trace_, .prompts = prompts_, .begin = {}, .step = {}};
    input.step = [&](const StepRecord& record) {
      progress.add(record);
      if (perfetto_) perfetto_->add(record);
    };
    if (perfetto_)
      input.begin = [&](double begin) {
        perfetto_->begin_run(named.label, setting_.limits.max_sequences, begin);
      };
    HEARTH_ASSIGN(const ReplayRun run, replay(named, input));
    ReplayReport report = make_report(run, goal_);
    report.policy = named.label;
    report.switches = describe(named.policy);
    if (list_requests_) request_lists_.push_back(requests_to_json(run));
    reports_.push_back(std::move(report));
    return {};
  }

  void print_json() const {
    nlohmann::json result = to_json(setting_, goal_);
    if (!simulate_) result["not_measured"] = to_json(overhead_);
    nlohmann::json& policies = result["policies"] = nlohmann::json::array();
    for (size_t i = 0; i < reports_.size(); ++i) {
      policies.push_back(to_json(reports_[i]));
      if (i < loads_.size()) policies.back()["other_programs_cpu_share"] = loads_[i].use.others;
      if (list_requests_) policies.back()["request_times"] = request_lists_[i];
    }
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void print_table() const {
    fmt::print("{}\n{}\n{}", format_heading(setting_, trace_), format_table(reports_, goal_),
               table_legend());
    if (simulate_) return;
    double measured = 0;
    for (const ReplayReport& report : reports_) measured += report.makespan_seconds;
    fmt::print("{}", format_overhead(overhead_, measured));
  }

  std::string trace_name_, policy_name_ = "continuous", goal_text_ = "ttft=1,tbt=0.1";
  std::string perfetto_path_;
  std::vector<std::string> compare_;
  PolicySwitchOptions switches_;
  ModelOptionsGroup model_;
  double speed_ = 1, length_scale_ = 1;
  size_t limit_ = 0;
  bool ideal_ = false, json_ = false, list_requests_ = false, simulate_ = false;

  Trace trace_;
  ServiceGoal goal_;
  std::vector<NamedPolicy> policies_;
  ReplaySetting setting_;
  std::unique_ptr<Session> session_;  // null in a simulation
  ModelledDevice device_;             // of a simulation
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
