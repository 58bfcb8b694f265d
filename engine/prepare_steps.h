// Starts the preparation of a session's steps: which of them its models can run, in which order
// their kernels are compiled, and what the device's driver needs for that.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/model/step_bucket_list.h"
#include "engine/model/step_preparation.h"
#include "engine/model/step_runner.h"
#include "engine/session.h"

namespace hearth {

class Device;

// A runner, and what its steps may need.
struct PreparedRunner {
  StepRunner* runner = nullptr;
  StepNeeds needs;
};

// What the steps of a session's own model may need.
StepNeeds session_needs(const SessionOptions& session, const StepLimits& limits);
// What those of its draft model or amateur may need: logits, and a token for each of them.
StepNeeds companion_needs(const SessionOptions& session, CompanionRole role);

// Compiles the kernels of the runners' steps in the background, from now on. No step of these
// runners waits for a compiler once the minimum is there. `done` is called when all are compiled.
// The runners outlive the preparation, and have no other.
std::unique_ptr<StepPreparation> prepare_steps(
    Device& device, PipelineStore& pipelines, const std::vector<PreparedRunner>& runners,
    std::function<void(const PreparationProgress&)> done);

}  // namespace hearth
