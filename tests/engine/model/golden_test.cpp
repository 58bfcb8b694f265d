// Every architecture against the logits that PyTorch and transformers computed for it, through the
// paged path: prompts of different lengths in one ragged batch, whole, in chunks and token by
// token.
#include "tests/support/golden.h"

#include <filesystem>
#include <memory>

#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kStepRows = 160;

class GoldenTest : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void load(const StepLimits& limits) {
    ASSERT_ASSIGN(golden_, read_golden_model(GetParam()));
    ASSERT_ASSIGN(file_, ModelFile::open(golden_.folder));
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = golden_.context}));
    ASSERT_EQ(model_->config().vocabulary, golden_.vocab);
    StepRunnerOptions options{.limits = limits, .slots = 8};
    options.limits.context = golden_.context;
    for (const auto& prompt : golden_.prompts)
      options.kv_blocks += static_cast<uint32_t>(prompt.size() / kTokensPerBlock + 1);
    ASSERT_ASSIGN(runner_, StepRunner::create(device(), pipelines(), *model_, options));
    // Blocks in an order that no kernel can guess: from the pool's end, prompts taking turns.
    tables_.assign(golden_.prompts.size(), {});
    uint32_t next = options.kv_blocks;
    for (uint32_t round = 0; next > 0; ++round)
      for (size_t p = 0; p < golden_.prompts.size(); ++p)
        if (round <= golden_.prompts[p].size() / kTokensPerBlock) tables_[p].push_back(--next);
  }

  // Runs all prompts, `chunk` tokens of each in a step, and compares every position.
  void check(uint32_t chunk, double limit) {
    std::vector<uint32_t> done(golden_.prompts.size(), 0);
    while (true) {
      StepBatch batch;
      std::vector<std::pair<size_t, uint32_t>> expected;  // prompt and position by logit row
      for (size_t p = 0; p < golden_.prompts.size(); ++p) {
        const std::vector<uint32_t>& prompt = golden_.prompts[p];
        const auto count =
            std::min<uint32_t>(chunk, static_cast<uint32_t>(prompt.size()) - done[p]);
        if (count == 0) continue;
        for (uint32_t i = 0; i < count; ++i) {
          batch.logit_rows.push_back(static_cast<uint32_t>(batch.ids.size()) + i);
          batch.sampling.push_back({});
          expected.emplace_back(p, done[p] + i);
        }
        batch.add_sequence(done[p], std::span(prompt).subspan(done[p], count), tables_[p]);
        done[p] += count;
      }
      if (expected.empty()) break;
      ASSERT_ASSIGN(const StepTicket ticket, runner_->submit(batch));
      ASSERT_OK(runner_->wait(ticket));
      ASSERT_ASSIGN(const std::vector<float> logits,
                    runner_->read_logits(static_cast<uint32_t>(expected.size())));
      for (size_t row = 0; row < expected.size(); ++row) {
        const std::span<const float> golden =
            golden_.logits(expected[row].first, expected[row].second);
        const std::vector<double> wanted(golden.begin(), golden.end());
        const std::span<const float> got =
            std::span(logits).subspan(row * golden_.vocab, golden_.vocab);
        ASSERT_LT(nmse(got, wanted), limit)
            << GetParam() << ", chunks of " << chunk << ", prompt " << expected[row].first
            << ", position " << expected[row].second;
      }
    }
  }

  GoldenModel golden_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<std::vector<uint32_t>> tables_;
};

TEST_P(GoldenTest, EveryPositionInChunksOfAnySize) {
  load({.rows = kStepRows, .sequences = 8, .logit_rows = kStepRows});
  for (const uint32_t chunk : {1000u, 1u, 7u, 16u}) check(chunk, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(golden_model_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace hearth::testing
