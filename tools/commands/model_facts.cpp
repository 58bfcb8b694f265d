#include "tools/commands/model_facts.h"

#include <algorithm>

#include "engine/companion_model.h"
#include "engine/model/kv_cache.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/device_select.h"
#include "runtime/instance.h"

namespace hearth {
namespace {

Result<DeviceCaps> find_device(const std::string& wanted) {
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(const size_t chosen, select_device(instance->devices(), wanted));
  return instance->devices()[chosen];
}

Status add_vocabulary(const ModelFile& file, ModelFacts& facts) {
  HEARTH_ASSIGN(const Vocabulary vocabulary, read_vocabulary(file));
  facts.vocabulary = vocabulary.kind;
  facts.vocabulary_tokens = vocabulary.tokens.size();
  facts.pretokenizer = vocabulary.pretokenizer;
  facts.chat_template = !vocabulary.chat_template.empty();
  return {};
}

// A pool of a given size bounds the longest sequence.
void keep_to_pool(MemoryPlan& memory) {
  memory.max_context = static_cast<uint32_t>(
      std::min<uint64_t>(memory.max_context, uint64_t{memory.kv_blocks} * kTokensPerBlock));
  memory.fits = memory.max_context >= memory.context;
}

ModelFacts::Companion companion_facts(const CompanionModel& companion, KvFormat kv) {
  return {.name = companion.file().name(),
          .weight_bytes = companion.plan().weight_bytes,
          .kv_bytes_per_token = kv_bytes_per_block(companion.plan().config, kv) / kTokensPerBlock};
}

}  // namespace

Result<ModelFacts> model_facts(const ModelFile& file, const SessionOptions& options) {
  ModelFacts facts{.name = file.name(), .tensors = file.tensors().size()};
  facts.asked_context = options.context;
  HEARTH_ASSIGN(const auto architecture, file.metadata().text("general.architecture"));
  facts.architecture = architecture.value_or("unknown");
  facts.sampling = sampling_defaults(file.metadata());
  for (const ModelTensor& tensor : file.tensors()) {
    FormatUse& use = facts.formats[std::string(format_info(tensor.format).name)];
    ++use.tensors;
    use.parameters += tensor.rows * tensor.cols;
    use.bytes += tensor.plain_bytes();
  }
  HEARTH_TRY(add_vocabulary(file, facts));
  if (facts.tensors > 0) {
    const Result<ModelPlan> plan = plan_model(file);
    HEARTH_TRY(file.check_files());
    if (!plan.ok()) return plan.error();
    facts.plan = *plan;
    facts.kv_bytes_per_token = kv_bytes_per_block(facts.plan->config, options.kv) / kTokensPerBlock;
  }
  std::unique_ptr<CompanionModel> draft, amateur;
  if (facts.plan && has_draft_model(options)) {
    HEARTH_ASSIGN(draft, CompanionModel::open(CompanionRole::kDraft, options.draft_model, file));
    facts.draft = companion_facts(*draft, options.kv);
  }
  if (facts.plan && !options.amateur.empty()) {
    HEARTH_ASSIGN(amateur, CompanionModel::open(CompanionRole::kAmateur, options.amateur, file));
    facts.amateur = companion_facts(*amateur, options.kv);
  }
  Result<DeviceCaps> device = find_device(options.device);
  if (!device.ok()) {
    if (!options.device.empty()) return device.error();
    facts.no_device = device.error().message;
    return facts;
  }
  facts.device = *std::move(device);
  if (facts.plan) {
    facts.limits = step_limits(options, *facts.device, facts.plan->config.context);
    if (amateur)
      facts.limits.context = amateur->context_limit(
          facts.limits.context == 0 ? facts.plan->config.context : facts.limits.context);
    MemoryRequest request{.limits = facts.limits, .kv_blocks = options.kv_blocks};
    for (const auto* companion : {&draft, &amateur})
      if (*companion) (*companion)->add_memory(*facts.device, facts.limits, request);
    facts.memory = plan_memory(
        *facts.device, bytes_to_plan_with(*facts.device, facts.device->free_bytes(), options),
        *facts.plan, request);
    if (options.kv_blocks != 0) keep_to_pool(*facts.memory);
  }
  return facts;
}

}  // namespace hearth
