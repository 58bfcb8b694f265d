// hearth replay: a request trace on the real engine, under one scheduling policy or several.
#include <algorithm>
#include <cmath>
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
#include "tools/replay/perfetto_trace.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_runner.h"
#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

constexpr uint64_t kPromptSeed = 1;

struct NamedPolicy {
  std::string label;
  Policy policy;
};

class ReplayCommand : public Command {
 public:
  ReplayCommand()
      : Command(CommandGroup::kMeasure, "replay", "Run a request trace under scheduling policies") {
  }

  void declare(Options& options) override {
    constexpr double kPositive = std::numeric_limits<double>::min();
    options.example("hearth replay synthetic:rate=4,n=100 --compare static,continuous");
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
    options
        .add("--max-seqs N", &model_.session.max_sequences, "Most sequences in the batch at once")
        .range(1, 4096);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Most tokens per step; 0 picks what suits the device")
        .range(0, 1u << 20);
    options.group("Output");
    options.add("--slo GOAL", &goal_text_, "Targets in seconds that count as goodput")
        .check(check_goal);
    options.add("--trace FILE", &perfetto_path_, "Write a Chrome/Perfetto trace");
    add_json_option(options, &json_);
    options.add("--requests", &list_requests_, "With --json, add the times of every request");
    model_.declare(options);
  }

  Status run() override {
    const Status status = run_all();
    // Not with the program's globals: some drivers are gone by then.
    session_.reset();
    return status;
  }

 private:
  Status run_all() {
    HEARTH_ASSIGN(trace_, read_trace(trace_name_, limit_));
    HEARTH_ASSIGN(goal_, parse_service_goal(goal_text_));
    HEARTH_ASSIGN(const std::vector<NamedPolicy> policies, chosen_policies());
    for (const NamedPolicy& policy : policies) model_.take_policy(policy.policy);
    if (length_scale_ != 1) scale_lengths(trace_, length_scale_);
    if (ideal_)
      arrive_at_once(trace_);
    else
      speed_up(trace_, speed_);
    model_.session.max_queue =
        std::max(model_.session.max_queue, static_cast<uint32_t>(trace_.requests.size()));
    HEARTH_ASSIGN(session_, model_.open());
    fit_to_model();
    if (!perfetto_path_.empty()) {
      HEARTH_ASSIGN(perfetto_, PerfettoTrace::create(perfetto_path_));
    }
    for (const NamedPolicy& policy : policies) HEARTH_TRY(measure(policy));
    if (perfetto_) HEARTH_TRY(perfetto_->finish());
    if (json_)
      print_json();
    else
      print_table();
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

  // The named ones, each with the switches that were given on top.
  Result<std::vector<NamedPolicy>> chosen_policies() const {
    std::vector<std::string> names = compare_;
    if (names.empty()) names.push_back(policy_name_);
    std::vector<NamedPolicy> policies;
    for (const std::string& name : names) {
      NamedPolicy named{.label = name, .policy = {}};
      HEARTH_ASSIGN(named.policy,
                    switches_.apply(model_.before_switches(*named_policy(name)), named.label));
      policies.push_back(std::move(named));
    }
    return policies;
  }

  void fit_to_model() {
    limits_ = session_->engine_options().limits;
    const uint64_t pool_tokens = uint64_t{limits_.pool_blocks} * kTokensPerBlock;
    longest_ = static_cast<uint32_t>(std::min<uint64_t>(limits_.context, pool_tokens));
    clipped_ = clip_lengths(trace_, longest_);
    const PromptMaker maker(
        text_token_ids(session_->tokenizer(), session_->model().config().vocabulary), kPromptSeed);
    for (size_t i = 0; i < trace_.requests.size(); ++i)
      prompts_.push_back(maker.make(trace_.requests[i], i));
  }

  Result<ReplayRun> replay(const NamedPolicy& policy, const ReplayInput& input) {
    // A new engine each time: nothing is in its prefix cache, and its counters are 0.
    EngineOptions options = session_->engine_options();
    options.policy = policy.policy;
    Engine engine(session_->runner(), session_->tokenizer(), options);
    return run_replay(engine, input);
  }

  // Kernels are compiled when a step of a new size first comes; that is not the policy's fault.
  Status warm_up(const NamedPolicy& policy) {
    Trace trace;
    const size_t count =
        std::min<size_t>(trace_.requests.size(), size_t{2} * model_.session.max_sequences);
    trace.requests.assign(trace_.requests.begin(),
                          trace_.requests.begin() + static_cast<ptrdiff_t>(count));
    arrive_at_once(trace);
    HEARTH_TRY(replay(policy, {.trace = trace, .prompts = prompts_}));
    return {};
  }

  Status measure(const NamedPolicy& policy) {
    HEARTH_TRY(warm_up(policy));
    ReplayInput input{.trace = trace_, .prompts = prompts_};
    if (perfetto_) {
      input.begin = [&](double begin) {
        perfetto_->begin_run(policy.label, model_.session.max_sequences, begin);
      };
      input.step = [&](const StepRecord& record) { perfetto_->add(record); };
    }
    HEARTH_ASSIGN(const ReplayRun run, replay(policy, input));
    ReplayReport report = make_report(run, goal_);
    report.policy = policy.label;
    report.switches = describe(policy.policy);
    if (list_requests_) request_lists_.push_back(requests_to_json(run));
    reports_.push_back(std::move(report));
    return {};
  }

  void print_json() const {
    nlohmann::json policies = nlohmann::json::array();
    for (size_t i = 0; i < reports_.size(); ++i) {
      policies.push_back(to_json(reports_[i]));
      if (list_requests_) policies.back()["request_times"] = request_lists_[i];
    }
    const nlohmann::json result = {
        {"trace", trace_name_},
        {"model", session_->file().name()},
        {"device", session_->device().caps().name},
        {"max_sequences", model_.session.max_sequences},
        {"max_step_tokens", limits_.max_step_tokens},
        {"kv_blocks", limits_.pool_blocks},
        {"context", longest_},
        {"clipped", clipped_},
        {"slo", {{"ttft", goal_.time_to_first_token}, {"tbt", goal_.time_between_tokens}}},
        {"policies", policies}};
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void print_table() const {
    fmt::print("{} on {}, {} sequences, {} tokens a step, {} KV blocks\n", session_->file().name(),
               session_->device().caps().name, limits_.max_sequences, limits_.max_step_tokens,
               limits_.pool_blocks);
    fmt::print("{}: {} requests, {} prompt and {} generated tokens", trace_name_,
               trace_.requests.size(), trace_.prompt_tokens(), trace_.generated_tokens());
    if (clipped_ > 0) fmt::print("; {} cut to {} tokens", clipped_, longest_);
    fmt::print("\n\n{}", format_table(reports_, goal_));
  }

  std::string trace_name_, policy_name_ = "continuous", goal_text_ = "ttft=1,tbt=0.1";
  std::string perfetto_path_;
  std::vector<std::string> compare_;
  PolicySwitchOptions switches_;
  ModelOptionsGroup model_;
  double speed_ = 1, length_scale_ = 1;
  size_t limit_ = 0;
  bool ideal_ = false, json_ = false, list_requests_ = false;

  Trace trace_;
  ServiceGoal goal_;
  std::unique_ptr<Session> session_;
  SchedulerLimits limits_;
  uint32_t longest_ = 0;  // tokens a sequence may have
  size_t clipped_ = 0;
  std::vector<std::vector<TokenId>> prompts_;
  std::unique_ptr<PerfettoTrace> perfetto_;
  std::vector<ReplayReport> reports_;
  std::vector<nlohmann::json> request_lists_;
};

ReplayCommand replay_command;

}  // namespace
}  // namespace hearth
