#include "ui/data/comparison.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_runner.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

constexpr size_t kMostComparedRequests = 1000;
constexpr uint64_t kComparedPromptSeed = 1;

// Makes times count from the start of the run.
ComparedRun compared_run(const PlannedReplay& side, std::vector<StepRecord> steps, ReplayRun run) {
  ComparedRun compared{.label = side.label,
                       .policy = side.policy,
                       .limits = side.limits,
                       .steps = std::move(steps),
                       .requests = std::move(run.requests)};
  for (StepRecord& step : compared.steps) {
    step.begin_seconds -= run.begin;
    step.submit_seconds -= run.begin;
    step.end_seconds -= run.begin;
    for (StepRecord::Arrival& arrival : step.arrived) arrival.seconds -= run.begin;
  }
  for (RequestTiming& timing : compared.requests) {
    timing.arrival -= run.begin;
    for (double& time : timing.token_times) time -= run.begin;
  }
  return compared;
}

std::vector<std::vector<TokenId>> make_prompts(const Trace& trace, std::vector<TokenId> ids) {
  const PromptMaker maker(std::move(ids), kComparedPromptSeed);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  return prompts;
}

}  // namespace

SchedulerLimits compared_limits() {
  return {.max_sequences = 8,
          .max_step_tokens = 256,
          .context = 1024,
          .pool_blocks = 80,
          .swap_blocks = 96};
}

Result<ComparisonPlan> plan_comparison(const PolicyPair& policies, const std::string& requests,
                                       const SchedulerLimits& limits) {
  ComparisonPlan plan{.sides = {}, .trace = {}, .requests = requests};
  HEARTH_ASSIGN(plan.trace, read_trace(requests, kMostComparedRequests));
  if (plan.trace.requests.empty()) return invalid("the trace has no requests");
  const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
  clip_lengths(plan.trace, static_cast<uint32_t>(std::clamp<uint64_t>(
                               std::min<uint64_t>(limits.context, pool_tokens), 2, UINT32_MAX)));
  for (size_t i = 0; i < plan.sides.size(); ++i)
    plan.sides[i] = {.label = policies[i].label, .policy = policies[i].policy, .limits = limits};
  return plan;
}

double ComparedRun::end_seconds() const {
  double end = steps.empty() ? 0 : steps.back().end_seconds;
  for (const RequestTiming& timing : requests)
    if (!timing.token_times.empty()) end = std::max(end, timing.token_times.back());
  return end;
}

double Comparison::end_seconds() const {
  return std::max(runs[0].end_seconds(), runs[1].end_seconds());
}

Result<Comparison> compare_modelled(const ModelledDevice& device, const ComparisonPlan& plan) {
  Comparison comparison{.simulated = true,
                        .model = device.model,
                        .device = device.describe_card(),
                        .requests = plan.requests,
                        .runs = {}};
  const auto prompts = make_prompts(plan.trace, text_token_ids(nullptr, device.vocabulary));
  for (size_t i = 0; i < plan.sides.size(); ++i) {
    const PlannedReplay& side = plan.sides[i];
    std::vector<StepRecord> steps;
    const ReplayInput input{.trace = plan.trace,
                            .prompts = prompts,
                            .begin = {},
                            .step = [&](const StepRecord& record) { steps.push_back(record); }};
    HEARTH_ASSIGN(ReplayRun run,
                  simulate_replay(device, side.limits, side.policy, input, side.speculation));
    comparison.runs[i] = compared_run(side, std::move(steps), std::move(run));
  }
  return comparison;
}

Result<Comparison> compare_on_session(Session& session, const ComparisonPlan& plan,
                                      const std::function<void(std::string)>& progress) {
  Comparison comparison{.simulated = false,
                        .model = session.file().name(),
                        .device = session.device().caps().name,
                        .requests = plan.requests,
                        .runs = {}};
  const auto prompts = make_prompts(
      plan.trace, text_token_ids(session.tokenizer(), session.model().config().vocabulary));
  for (const bool measured : {false, true})
    for (size_t i = 0; i < plan.sides.size(); ++i) {
      const PlannedReplay& side = plan.sides[i];
      size_t ended = 0;
      const auto report = [&] {
        progress(fmt::format("{} {}, {} of {} requests", measured ? "measuring" : "warming up with",
                             side.label, ended, plan.trace.requests.size()));
      };
      report();
      EngineOptions options = session.engine_options();
      options.policy = side.policy;
      options.limits = side.limits;
      Engine engine(session.runner(), session.tokenizer(), options);
      std::vector<StepRecord> steps;
      const ReplayInput input{.trace = plan.trace,
                              .prompts = prompts,
                              .begin = {},
                              .step = [&](const StepRecord& record) {
                                steps.push_back(record);
                                if (record.finished.empty()) return;
                                ended += record.finished.size();
                                report();
                              }};
      HEARTH_ASSIGN(ReplayRun run, run_replay(engine, input));
      if (measured) comparison.runs[i] = compared_run(side, std::move(steps), std::move(run));
    }
  return comparison;
}

}  // namespace hearth
