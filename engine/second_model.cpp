#include "engine/second_model.h"

#include <fmt/format.h>

#include "engine/draft_vocabulary.h"
#include "engine/open_model_file.h"
#include "engine/text/vocabulary.h"
#include "runtime/device.h"

namespace hearth {

Result<std::unique_ptr<SecondModel>> SecondModel::open(const std::string& name,
                                                       const ModelFile& first) {
  std::unique_ptr<SecondModel> second(new SecondModel);
  HEARTH_ASSIGN(second->file_, open_model_file(name));
  HEARTH_ASSIGN(second->plan_, plan_model(*second->file_));
  HEARTH_ASSIGN(const ModelPlan of_first, plan_model(first));
  HEARTH_ASSIGN(const Vocabulary there, read_vocabulary(*second->file_));
  HEARTH_ASSIGN(const Vocabulary here, read_vocabulary(first));
  std::optional<std::string> difference = vocabulary_difference(there, here);
  // Rows of logits may be longer than the vocabulary.
  if (!difference && second->plan_.config.vocabulary != of_first.config.vocabulary)
    difference = fmt::format("it has {} logits per token, not {}", second->plan_.config.vocabulary,
                             of_first.config.vocabulary);
  if (difference)
    return invalid(fmt::format("{} and {} cannot be used together: {}", second->file_->name(),
                               first.name(), *difference));
  HEARTH_TRY(second->file_->check_files());
  return second;
}

void SecondModel::add_memory(const DeviceCaps& caps, const StepLimits& limits,
                             MemoryRequest& request) const {
  const MemoryPlan memory = plan_memory(caps, 0, plan_, {.limits = limits});
  request.draft_bytes += memory.weight_bytes + memory.activation_bytes;
  request.draft_bytes_per_block += memory.kv_bytes_per_block;
}

Status SecondModel::load(Device& device, PipelineStore& pipelines,
                         const StepRunnerOptions& options) {
  HEARTH_ASSIGN(model_, Model::load(device, *file_, {.context = options.limits.context}));
  HEARTH_TRY(file_->check_files());
  HEARTH_ASSIGN(runner_, StepRunner::create(device, pipelines, *model_, options));
  return {};
}

}  // namespace hearth
