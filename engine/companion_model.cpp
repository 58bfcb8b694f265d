#include "engine/companion_model.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/drafter.h"
#include "engine/model/kv_cache.h"
#include "engine/open_model_file.h"
#include "engine/text/vocabulary.h"
#include "engine/vocabulary_difference.h"
#include "models/default_model.h"
#include "runtime/device.h"

namespace hearth {
namespace {

Result<std::unique_ptr<ModelFile>> open_companion_file(const std::string& name,
                                                       const ModelFile& model) {
  if (!name.empty()) return open_model_file(name);
  if (model.name() != default_model_name())
    return invalid(fmt::format("--draft-model must name a smaller model with the vocabulary of {}",
                               model.name()));
  return ModelFile::from_memory(default_draft_model(), std::string(default_draft_model_name()));
}

}  // namespace

Result<std::unique_ptr<CompanionModel>> CompanionModel::open(CompanionRole role,
                                                             const std::string& name,
                                                             const ModelFile& model) {
  std::unique_ptr<CompanionModel> companion(new CompanionModel(role));
  HEARTH_ASSIGN(companion->file_, open_companion_file(name, model));
  const ModelFile& file = *companion->file_;
  HEARTH_ASSIGN(const Vocabulary there, read_vocabulary(file));
  HEARTH_ASSIGN(const Vocabulary here, read_vocabulary(model));
  std::optional<std::string> difference = vocabulary_difference(there, here);
  if (!difference) {
    HEARTH_ASSIGN(companion->plan_, plan_model(file));
    HEARTH_ASSIGN(const ModelPlan of_model, plan_model(model));
    const uint32_t logits = companion->plan_.config.vocabulary;
    // Rows of logits may be longer than the vocabulary. Only those that are mixed must be equally
    // long.
    if (role == CompanionRole::kAmateur && logits != of_model.config.vocabulary)
      difference =
          fmt::format("it has {} logits per token, not {}", logits, of_model.config.vocabulary);
  }
  if (difference)
    return invalid(fmt::format("{} cannot {} {}: {}", file.name(),
                               role == CompanionRole::kDraft ? "draft for" : "be the amateur of",
                               model.name(), *difference));
  HEARTH_TRY(file.check_files());
  return companion;
}

uint32_t CompanionModel::context_limit(uint32_t of_model) const {
  return role_ == CompanionRole::kAmateur ? std::min(of_model, plan_.config.context) : of_model;
}

StepLimits CompanionModel::limits(StepLimits of_model) const {
  if (role_ == CompanionRole::kAmateur) return of_model;
  of_model.candidates = 0;
  of_model.logit_rows = of_model.sequences;
  of_model.masks = 0;
  const uint32_t own = plan_.config.context;
  of_model.context = of_model.context == 0 ? own : std::min(of_model.context, own);
  return of_model;
}

void CompanionModel::add_memory(const DeviceCaps& caps, const StepLimits& of_model,
                                MemoryRequest& request) const {
  const MemoryPlan memory = plan_memory(caps, 0, plan_, {.limits = limits(of_model)});
  request.companion_bytes += memory.weight_bytes + memory.activation_bytes;
  request.companion_bytes_per_block += memory.kv_bytes_per_block;
  if (role_ == CompanionRole::kDraft)
    request.companion_bytes += drafted_places(of_model.sequences) * sizeof(uint32_t);
}

Status CompanionModel::allocate(Device& device, PipelineStore& pipelines,
                                StepRunnerOptions options) {
  options.limits = limits(options.limits);
  HEARTH_ASSIGN(model_, Model::allocate(device, *file_, {.context = options.limits.context}));
  // The amateur's blocks have the numbers of the model's, so it needs them all.
  if (role_ == CompanionRole::kDraft)
    options.kv_blocks = static_cast<uint32_t>(std::min<uint64_t>(
        options.kv_blocks, most_kv_blocks(plan_.config, options.limits.kv,
                                          device.caps().limits.max_allocation_bytes)));
  HEARTH_ASSIGN(runner_, StepRunner::create(device, pipelines, *model_, options));
  return {};
}

Status CompanionModel::fill(Device& device) const {
  HEARTH_TRY(model_->fill(device, *file_, {.context = model_->context()}));
  return file_->check_files();
}

}  // namespace hearth
