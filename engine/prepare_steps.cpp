#include "engine/prepare_steps.h"

#include <utility>

#include "engine/model/kernel_warm_up.h"
#include "runtime/device.h"

namespace hearth {

StepNeeds session_needs(const SessionOptions& session, const StepLimits& limits) {
  return {.trees = session.speculation.method == SpeculationMethod::kTree,
          .mixes = true,  // requests may ask for guidance
          .candidates = limits.candidates > 0};
}

StepNeeds companion_needs(const SessionOptions& session, CompanionRole role) {
  // A draft model proposes one token after the other; an amateur computes what the model computes.
  const bool trees =
      role == CompanionRole::kAmateur && session.speculation.method == SpeculationMethod::kTree;
  return {.trees = trees, .extras = false};
}

std::unique_ptr<StepPreparation> prepare_steps(
    Device& device, PipelineStore& pipelines, const std::vector<PreparedRunner>& runners,
    std::function<void(const PreparationProgress&)> done) {
  const bool cpu = is_cpu(device.caps());
  std::vector<PreparedSteps> steps;
  for (const auto& [runner, needs] : runners) {
    const StepLimits& limits = runner->options().limits;
    PreparedSteps& each = steps.emplace_back(
        [runner](const StepBucket& bucket) { return runner->pipelines_of(bucket); },
        minimum_buckets(limits, needs), covering_buckets(limits, needs));
    // Drivers for CPUs create pipelines quickly and compile them when they first run. There a
    // stand-in would cost more than it saves, so nothing runs before all pipelines are there.
    if (cpu) std::swap(each.minimum, each.rest);
  }
  StepPreparationOptions options{.done = std::move(done)};
  if (cpu)
    options.warm_up = [warm_up = std::make_shared<KernelWarmUp>(device)](const Pipeline& pipeline) {
      return warm_up->run_if_idle(pipeline);
    };
  auto preparation = std::make_unique<StepPreparation>(pipelines, steps, std::move(options));
  for (const PreparedRunner& each : runners) each.runner->set_preparation(preparation.get());
  return preparation;
}

}  // namespace hearth
