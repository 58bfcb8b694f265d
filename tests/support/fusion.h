// Logits of made-up models, run with fused plans, with unfused ones, and with the device's own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "tests/support/compare.h"
#include "tests/support/emulated_plan.h"
#include "tests/support/gpu.h"
#include "tests/support/made_model.h"

namespace hearth::testing {

// What was fused in the plans of a runner, by name.
using FusionCounts = std::map<std::string, uint32_t>;

inline void count_fusions(const StepPlan& plan, FusionCounts& counts) {
  for (const PlannedOp& op : plan.ops) {
    if (const auto* norm = op.as<PlannedNorm>()) {
      counts["sums in a norm"] += norm->addend && norm->addend->parts;
      counts["f16 rows"] += norm->shape.form == RowForm::kHalves;
    } else if (const auto* product = op.as<PlannedProduct>()) {
      counts["norm in a product"] += product->norm.has_value();
      counts["gate in a product"] += product->gate.has_value();
      counts["shared norm"] += product->finishes.has_value();
    } else if (const auto* attention = op.as<PlannedAttention>()) {
      counts["rope in attention"] += attention->rope.has_value();
    } else if (const auto* rope = op.as<PlannedRopeKv>()) {
      counts["sums in rope"] += rope->parts.has_value();
    } else if (const auto* experts = op.as<PlannedExperts>()) {
      counts["norm in experts"] += experts->norm.has_value();
      counts["experts' results in a norm"] += experts->parts.has_value();
    }
  }
}

// New tokens of each sequence in a step.
using FusionSteps = std::vector<std::vector<uint32_t>>;

class FusionFixture : public GpuTest {
 protected:
  static constexpr uint32_t kContext = 128, kSequences = 3;
  static constexpr uint32_t kSequenceBlocks = kContext / kTokensPerBlock;

  // A model of an architecture, with heads for which GPUs have all their kernels.
  static MadeModelInfo model_of(const std::string& architecture) {
    MadeModelInfo info = small_model(architecture);
    info.heads = 2;
    info.kv_heads = 1;
    info.head_size = 64;
    info.context = kContext;
    return info;
  }
  // The same, for plans with matrix units. Emulated kernels have room for 4 subgroups, which is
  // enough for 512 inputs of quantized weights, or for 1,024 of floats, of which products are split
  // along k.
  static MadeModelInfo wide_model_of(const std::string& architecture, uint32_t width) {
    MadeModelInfo info = model_of(architecture);
    info.heads = 4;
    info.kv_heads = 2;
    info.width = info.mlp_width = width;
    return info;
  }

  void load(const MadeModelInfo& info) {
    ASSERT_ASSIGN(file_, MadeModel::random(info));
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = kContext}));
  }

  Result<std::vector<std::vector<float>>> logits_with(const StepPlanning& planning,
                                                      const FusionSteps& steps) {
    const StepRunnerOptions options{
        .limits = {.rows = 128, .sequences = kSequences, .logit_rows = 4, .context = kContext},
        .slots = kSequences,
        .kv_blocks = kSequences * kSequenceBlocks,
        .planning = &planning};
    HEARTH_ASSIGN(const auto runner, StepRunner::create(device(), pipelines(), *model_, options));
    std::vector<std::vector<float>> all;
    std::vector<uint32_t> done(kSequences, 0);
    for (const std::vector<uint32_t>& step : steps) {
      StepBatch batch;
      for (uint32_t i = 0; i < step.size(); ++i) {
        if (step[i] == 0) continue;
        std::vector<uint32_t> ids(step[i]), blocks(kSequenceBlocks);
        for (uint32_t& id : ids) id = (i * 37 + done[i]++ * 11) % model_->config().vocabulary;
        std::iota(blocks.begin(), blocks.end(), i * kSequenceBlocks);
        batch.add_sequence(done[i] - step[i], ids, blocks);
        batch.logit_rows.push_back(static_cast<uint32_t>(batch.ids.size()) - 1);
        batch.sampling.push_back({});
      }
      HEARTH_ASSIGN(const StepTicket ticket, runner->submit(batch));
      HEARTH_TRY(runner->wait(ticket));
      HEARTH_ASSIGN(std::vector<float> logits,
                    runner->read_logits(static_cast<uint32_t>(batch.logit_rows.size())));
      all.push_back(std::move(logits));
    }
    return all;
  }

  // Compares fused plans for `caps` with unfused ones, and with the device's own, of which `limit`
  // is the NMSE; returns what was fused. `edit` changes every plan before it runs.
  FusionCounts check(
      const DeviceCaps& caps, const FusionSteps& steps, double limit = 1e-5,
      const std::function<void(StepPlan&)>& edit = [](StepPlan&) {}) {
    FusionCounts fused, unfused;
    const auto logits = [&](bool fusion, FusionCounts& counts) {
      return logits_with({.caps = caps,
                          .fusion = fusion,
                          .edit =
                              [&](StepPlan& plan) {
                                count_fusions(plan, counts);
                                edit(plan);
                              }},
                         steps);
    };
    const auto with = logits(true, fused), without = logits(false, unfused);
    const auto own = logits_with({}, steps);
    for (const auto* result : {&with, &without, &own})
      EXPECT_TRUE(result->ok()) << result->error().message;
    if (HasFailure()) return fused;
    for (const auto& [name, count] : unfused) EXPECT_EQ(count, 0u) << name;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::vector<double> wanted((*without)[i].begin(), (*without)[i].end());
      const std::vector<double> usual((*own)[i].begin(), (*own)[i].end());
      EXPECT_LT(nmse((*with)[i], wanted), 1e-5) << "fused and unfused, step " << i;
      EXPECT_LT(nmse((*with)[i], usual), limit) << "fused and the device's own, step " << i;
    }
    return fused;
  }

  // check() with plans for an H200, whose tiles of up to 32 rows emulated kernels have room for: a
  // few rows, several prompts, and single tokens of three sequences and of one.
  FusionCounts check_with_matrix_units(double limit) {
    const DeviceCaps& own = device().caps();
    const FusionSteps steps = {{5, 0, 0}, {1, 11, 13}, {1, 1, 1},
                               {0, 1, 0}, {12, 0, 0},  {0, 0, 30}};
    if (own.features.lane_fragments) return check(own, steps, limit);
    const KernelEmulator emulator(own.subgroup_size);
    return check(gpu_with_matrix_units(own), steps, limit,
                 [&](StepPlan& plan) { emulator.replace(plan); });
  }

  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
};

}  // namespace hearth::testing
