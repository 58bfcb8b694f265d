#include "tools/bench/step_profile.h"

#include <algorithm>
#include <chrono>

#include "engine/ops/kernel_plan.h"
#include "tools/bench/model_bench.h"

namespace hearth {
namespace {

constexpr size_t kSamples = 5;
constexpr double kWarmUpSeconds = 0.5;

template <class T>
T& median(std::vector<T>& values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<double> run_step(StepRunner& runner, const StepBatch& batch) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  HEARTH_ASSIGN(const StepTicket ticket, runner.submit(batch));
  HEARTH_TRY(runner.wait(ticket));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The first step compiles and records, and the GPU's clock drops meanwhile. The GPU is then kept
// busy for a while, so that it runs at full clock in every timed step.
Result<double> step_seconds(Session& session, const StepBatch& batch) {
  StepRunner& runner = session.runner();
  HEARTH_TRY(run_step(runner, batch));
  for (double warm = is_cpu(session.device().caps()) ? kWarmUpSeconds : 0; warm < kWarmUpSeconds;) {
    HEARTH_ASSIGN(const double taken, run_step(runner, batch));
    warm += taken;
  }
  std::vector<double> seconds;
  while (seconds.size() < kSamples) {
    HEARTH_ASSIGN(const double taken, run_step(runner, batch));
    seconds.push_back(taken);
  }
  return median(seconds);
}

// The median of several runs, span by span.
Result<std::vector<GpuSpan>> profile(StepRunner& runner, const StepBatch& batch) {
  std::vector<std::vector<GpuSpan>> runs;
  for (size_t i = 0; i < kSamples; ++i) {
    HEARTH_ASSIGN(std::vector<GpuSpan> spans, runner.profile(batch));
    runs.push_back(std::move(spans));
  }
  std::vector<GpuSpan> spans = runs.front();
  for (size_t i = 0; i < spans.size(); ++i) {
    std::vector<double> seconds;
    for (const std::vector<GpuSpan>& run : runs) seconds.push_back(run[i].seconds);
    spans[i].seconds = median(seconds);
  }
  return spans;
}

void add_kernel(std::string& kernels, std::string_view kernel) {
  if (kernels.find(kernel) != std::string::npos) return;
  if (!kernels.empty()) kernels += " + ";
  kernels += kernel;
}

}  // namespace

std::vector<PartTime> time_parts(std::span<const GpuSpan> spans, const PartCosts& costs,
                                 const Ceilings& ceilings) {
  std::vector<PartTime> parts;
  for (const GpuSpan& span : spans) {
    const size_t cut = span.label.find(kSectionSeparator);
    const std::string name = span.label.substr(0, cut);
    auto part = std::ranges::find(parts, name, &PartTime::part);
    if (part == parts.end()) part = parts.insert(parts.end(), PartTime{.part = name});
    if (cut != std::string::npos)
      add_kernel(part->kernels,
                 std::string_view(span.label).substr(cut + kSectionSeparator.size()));
    ++part->calls;
    part->seconds += span.seconds;
  }
  for (PartTime& part : parts) {
    if (const auto cost = costs.find(part.part); cost != costs.end())
      part.cost = {.bytes = cost->second.bytes(), .flops = cost->second.operations};
    part.ceiling = ceiling_share(part.cost, part.seconds, ceilings);
  }
  return parts;
}

Result<StepProfile> profile_step(Session& session, uint32_t batch, uint32_t position, uint32_t rows,
                                 const Ceilings& ceilings) {
  const StepBatch step = bench_step(batch, position, rows);
  StepProfile result{.test = rows > 1 ? "prompt" : "decode",
                     .batch = batch,
                     .tokens = batch * rows,
                     .context = position};
  HEARTH_ASSIGN(result.step_seconds, step_seconds(session, step));
  HEARTH_ASSIGN(const std::vector<GpuSpan> spans, profile(session.runner(), step));
  result.parts =
      time_parts(spans, step_costs(session.model().plan(), session.options().kv, step), ceilings);
  return result;
}

}  // namespace hearth
