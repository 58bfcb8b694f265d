// Fused plans compute what unfused plans compute, for every architecture and for steps of one row,
// a few rows, many rows and several prompts. Steps are planned for a GPU without matrix units, so
// that norms, gates and rope are fused as they are there, and run on the device of the test. A third
// run, with the device's own kernels, shows that those of the GPU compute something sensible here.
//
// All models have the same sizes, so that their kernels are compiled once.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/made_model.h"

namespace hearth::testing {
namespace {

// What was fused in the plans of a runner, by name.
using FusionCounts = std::map<std::string, uint32_t>;

void count_fusions(const StepPlan& plan, FusionCounts& counts) {
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
    }
  }
}

// New tokens of each sequence in a step.
using FusionSteps = std::vector<std::vector<uint32_t>>;

class FusionTest : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  static constexpr uint32_t kContext = 128, kSequences = 3;
  static constexpr uint32_t kSequenceBlocks = kContext / kTokensPerBlock;

  // A GPU without matrix units, otherwise like this device.
  DeviceCaps plain_gpu() {
    DeviceCaps caps = device().caps();
    caps.type = DeviceType::kDiscrete;
    caps.features.coopmat = caps.features.lane_fragments = false;
    caps.limits.multiprocessors = 8;
    return caps;
  }

  void load() {
    MadeModelInfo info = small_model(GetParam());
    info.heads = 2;
    info.kv_heads = 1;
    info.head_size = 64;
    info.context = kContext;
    has_experts_ = info.experts > 0;
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

  // Compares fused plans for `caps` with unfused ones and with the device's own; returns what was
  // fused.
  FusionCounts check(const DeviceCaps& caps, const FusionSteps& steps) {
    FusionCounts fused, unfused;
    const auto logits = [&](bool fusion, FusionCounts& counts) {
      return logits_with({.caps = caps,
                          .fusion = fusion,
                          .edit = [&](StepPlan& plan) { count_fusions(plan, counts); }},
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
      EXPECT_LT(nmse((*with)[i], usual), 1e-5) << "fused and the device's own, step " << i;
    }
    return fused;
  }

  // Several prompts, single tokens of three sequences and of one, then many rows.
  const FusionSteps kSteps = {{5, 0, 0}, {1, 11, 13}, {1, 1, 1}, {0, 1, 0}, {0, 0, 70}};

  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
  bool has_experts_ = false;
};

TEST_P(FusionTest, OnAGpuWithoutMatrixUnits) {
  load();
  FusionCounts fused = check(plain_gpu(), kSteps);
  EXPECT_GT(fused["norm in a product"], 0u);
  EXPECT_EQ(fused["gate in a product"] > 0, !has_experts_);
  EXPECT_GT(fused["rope in attention"], 0u);
}

std::vector<std::string> fused_architectures() {
  std::vector<std::string> names;
  for (const Architecture* architecture : all_architectures())
    names.emplace_back(architecture->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Architectures, FusionTest, ::testing::ValuesIn(fused_architectures()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hearth::testing
