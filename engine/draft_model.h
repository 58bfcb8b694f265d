// The draft model of a session: which file it is, whether it can draft for the session's model,
// what it takes, and loading it. The model it drafts for is the target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/drafter.h"
#include "engine/memory_plan.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// Opens `draft` as open_model_file() does; "" is the built-in draft model, which only drafts for
// the built-in model. Fails in one line if it cannot draft for the target.
Result<std::unique_ptr<ModelFile>> open_draft_file(const std::string& draft,
                                                   const ModelFile& target);

// The sizes of the draft model's steps, for the target's.
StepLimits draft_limits(const StepLimits& target, uint32_t draft_context);

// Adds what the draft model takes to the request for the target's memory.
void add_draft_memory(const DeviceCaps& caps, const ModelPlan& draft, const StepLimits& limits,
                      MemoryRequest& request);

class DraftModel {
 public:
  // Checks the file and reads its header.
  static Result<std::unique_ptr<DraftModel>> open(const std::string& draft,
                                                  const ModelFile& target);

  const ModelFile& file() const { return *file_; }
  const ModelPlan& plan() const { return plan_; }
  // Allocates everything. `blocks` is the number of KV blocks.
  Status load(Device& device, PipelineStore& pipelines, const StepLimits& limits, uint32_t blocks);

  // REQUIRES: load() succeeded.
  StepRunner& runner() { return *runner_; }
  DrafterOptions drafter_options() const;

 private:
  DraftModel() = default;

  std::unique_ptr<ModelFile> file_;
  ModelPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace hearth
