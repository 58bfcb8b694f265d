// A second model next to the session's own, on the same device: the draft model of speculation or
// the amateur of contrastive decoding. An id means the same to both models. It has its own KV pool,
// with as many blocks as the model's if its device memory allows.
#pragma once

#include <cstdint>
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

enum class CompanionRole : uint8_t {
  kDraft,    // proposes tokens for the model; its sequences may be shorter than the model's
  kAmateur,  // computes what the model computes, and its logits are mixed with the model's
};

class CompanionModel {
 public:
  // Opens the file that `name` names (open_model_file.h) and compares its vocabulary with that of
  // `model`. "" is the built-in draft model, which only drafts for the built-in model. An error
  // says in one line why the two cannot be used together.
  static Result<std::unique_ptr<CompanionModel>> open(CompanionRole role, const std::string& name,
                                                      const ModelFile& model);

  CompanionRole role() const { return role_; }
  const ModelFile& file() const { return *file_; }
  const ModelPlan& plan() const { return plan_; }
  // The longest sequence of a model whose own is `of_model` tokens: an amateur computes them all.
  uint32_t context_limit(uint32_t of_model) const;
  // The sizes of its steps, given those of the model's.
  StepLimits limits(StepLimits of_model) const;
  // Adds what it takes to the request for the model's memory: weights, activations and as many KV
  // blocks as the model has.
  void add_memory(const DeviceCaps& caps, const StepLimits& of_model, MemoryRequest& request) const;
  // Allocates the weights and creates the runner, with limits() of the options' limits. No step may
  // run before fill().
  Status allocate(Device& device, PipelineStore& pipelines, StepRunnerOptions options);
  // Loads the weights.
  Status fill(Device& device) const;
  // REQUIRES: allocate() succeeded.
  StepRunner& runner() { return *runner_; }
  const StepRunner& runner() const { return *runner_; }

 private:
  explicit CompanionModel(CompanionRole role) : role_(role) {}

  const CompanionRole role_;
  std::unique_ptr<ModelFile> file_;
  ModelPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace hearth
