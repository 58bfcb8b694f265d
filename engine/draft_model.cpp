#include "engine/draft_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/draft_vocabulary.h"
#include "engine/model/kv_cache.h"
#include "engine/open_model_file.h"
#include "engine/text/vocabulary.h"
#include "models/default_model.h"
#include "runtime/device.h"

namespace hearth {

Result<std::unique_ptr<ModelFile>> open_draft_file(const std::string& draft,
                                                   const ModelFile& target) {
  std::unique_ptr<ModelFile> file;
  if (draft.empty()) {
    if (target.name() != default_model_name())
      return invalid(fmt::format(
          "{} needs a draft model: name one with the same vocabulary with --draft-model",
          target.name()));
    HEARTH_ASSIGN(file, ModelFile::from_memory(default_draft_model(),
                                               std::string(default_draft_model_name())));
  } else {
    HEARTH_ASSIGN(file, open_model_file(draft));
  }
  HEARTH_ASSIGN(const Vocabulary of_draft, read_vocabulary(*file));
  HEARTH_ASSIGN(const Vocabulary of_target, read_vocabulary(target));
  if (const auto difference = vocabulary_difference(of_draft, of_target))
    return invalid(
        fmt::format("{} cannot draft for {}: {}", file->name(), target.name(), *difference));
  return file;
}

StepLimits draft_limits(const StepLimits& target, uint32_t draft_context) {
  StepLimits limits = target;
  limits.logit_rows = target.sequences;
  limits.masks = 0;
  limits.context = target.context == 0 ? draft_context : std::min(target.context, draft_context);
  return limits;
}

void add_draft_memory(const DeviceCaps& caps, const ModelPlan& draft, const StepLimits& limits,
                      MemoryRequest& request) {
  const MemoryPlan memory =
      plan_memory(caps, 0, draft, {.limits = draft_limits(limits, draft.config.context)});
  request.draft_bytes = memory.weight_bytes + memory.activation_bytes;
  request.draft_bytes_per_block = memory.kv_bytes_per_block;
}

Result<std::unique_ptr<DraftModel>> DraftModel::open(const std::string& draft,
                                                     const ModelFile& target) {
  std::unique_ptr<DraftModel> model(new DraftModel);
  HEARTH_ASSIGN(model->file_, open_draft_file(draft, target));
  HEARTH_ASSIGN(model->plan_, plan_model(*model->file_));
  HEARTH_TRY(model->file_->check_files());
  return model;
}

Status DraftModel::load(Device& device, PipelineStore& pipelines, const StepLimits& limits,
                        uint32_t blocks) {
  const StepLimits own = draft_limits(limits, plan_.config.context);
  HEARTH_ASSIGN(model_, Model::load(device, *file_, {.context = own.context}));
  HEARTH_TRY(file_->check_files());
  const uint64_t most =
      most_kv_blocks(plan_.config, own.kv, device.caps().limits.max_allocation_bytes);
  HEARTH_ASSIGN(
      runner_,
      StepRunner::create(device, pipelines, *model_,
                         {.limits = own,
                          .slots = own.sequences,
                          .kv_blocks = static_cast<uint32_t>(std::min<uint64_t>(blocks, most))}));
  return {};
}

DrafterOptions DraftModel::drafter_options() const {
  const StepRunnerOptions& runner = runner_->options();
  return {.slots = runner.slots,
          .step_rows = runner.limits.rows,
          .context = runner.limits.context,
          .blocks = runner.kv_blocks};
}

}  // namespace hearth
