// A second model on the device of a first one, with its own KV pool: the amateur of contrastive
// decoding. The two have the same vocabulary: an id means the same to both.
#pragma once

#include <memory>
#include <string>

#include "engine/memory_plan.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

class SecondModel {
 public:
  // Opens the file that `name` names (open_model_file.h) and compares its vocabulary with that of
  // `first`. An error says how they differ.
  static Result<std::unique_ptr<SecondModel>> open(const std::string& name, const ModelFile& first);

  const ModelFile& file() const { return *file_; }
  const ModelPlan& plan() const { return plan_; }
  // Adds what this model takes to the request for the first one's memory: weights, activations and
  // as many KV blocks as the first has.
  void add_memory(const DeviceCaps& caps, const StepLimits& limits, MemoryRequest& request) const;
  // Loads the weights and creates the runner. REQUIRES: sequences are no longer than this model
  // takes.
  Status load(Device& device, PipelineStore& pipelines, const StepRunnerOptions& options);
  // REQUIRES: load() succeeded.
  StepRunner& runner() { return *runner_; }

 private:
  SecondModel() = default;

  std::unique_ptr<ModelFile> file_;
  ModelPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace hearth
