// The smallest model of models/default on a device, for tests of the engine: fast even with
// validation layers on.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "runtime/device.h"
#include "runtime/pipeline.h"

namespace hearth::testing {

struct TinyModel {
  static Result<TinyModel> open(Device& device, PipelineStore& pipelines,
                                const StepRunnerOptions& options) {
    TinyModel tiny;
    HEARTH_ASSIGN(tiny.file, ModelFile::open(std::filesystem::path(HEARTH_SOURCE_DIR) / "models" /
                                             "default" / "hearth-tiny-Q8_0.gguf"));
    HEARTH_ASSIGN(tiny.model, Model::load(device, *tiny.file, {.context = options.limits.context}));
    HEARTH_ASSIGN(tiny.runner, StepRunner::create(device, pipelines, *tiny.model, options));
    return tiny;
  }

  // An engine on it that checks integrity after every step. It uses `pool_blocks` of the runner's
  // blocks, or all of them if 0.
  std::unique_ptr<Engine> engine(const Policy& policy = {}, uint32_t pool_blocks = 0,
                                 bool start_paused = false, bool check_integrity = true,
                                 const SpeculationOptions& speculation = {},
                                 StepRunner* draft = nullptr) const {
    const StepRunnerOptions& made_for = runner->options();
    DrafterOptions drafter;
    if (draft != nullptr)
      drafter = {.slots = draft->options().slots,
                 .step_rows = draft->options().limits.rows,
                 .context = draft->options().limits.context,
                 .blocks = draft->options().kv_blocks,
                 .vocabulary = model->config().vocabulary,
                 .draft_vocabulary = model->config().vocabulary,
                 .branches = speculation.method == SpeculationMethod::kTree ? 3u : 1u,
                 .first_place = made_for.slots,
                 .shares_places = &draft->sampled_ids() == &runner->sampled_ids()};
    return std::make_unique<Engine>(
        *runner, nullptr,
        EngineOptions{.limits = {.max_sequences = made_for.slots,
                                 .max_step_tokens = made_for.limits.rows,
                                 .context = made_for.limits.context,
                                 .pool_blocks = pool_blocks != 0 ? pool_blocks : made_for.kv_blocks,
                                 .swap_blocks = made_for.swap_blocks,
                                 .max_proposed = made_for.limits.logit_rows - made_for.slots},
                      .policy = policy,
                      .vocabulary = model->config().vocabulary,
                      .start_paused = start_paused,
                      .speculation = speculation,
                      .draft_executor = draft,
                      .drafter = drafter,
                      .check_integrity = check_integrity});
  }

  // `tokens` ids that depend on `seed` from index `shared` on.
  std::vector<TokenId> prompt(uint32_t tokens, uint32_t seed, uint32_t shared = 0) const {
    std::vector<TokenId> ids(tokens);
    for (uint32_t i = 0; i < tokens; ++i) {
      const uint32_t stream = i < shared ? 0 : seed + 1;
      ids[i] = (i * 7919u + stream * 104729u + i * stream * 31u) % model->config().vocabulary;
    }
    return ids;
  }

  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Model> model;
  std::unique_ptr<StepRunner> runner;
};

}  // namespace hearth::testing
