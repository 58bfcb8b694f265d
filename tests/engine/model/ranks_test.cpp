// A model whose layers are divided over devices: logits to the last bit, ids under everything that
// the engine does, memory per rank. The ranks here share one device.
#include "engine/open_model_file.h"
#include "engine/session.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/rank_models.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

struct SplitCase {
  std::filesystem::path model;
  std::vector<uint32_t> layers;  // per rank
};

class RanksTest : public GpuTest {
 protected:
  static constexpr StepRunnerOptions kRunner{.limits = {.rows = 32,
                                                        .sequences = 4,
                                                        .logit_rows = 32,
                                                        .context = 64,
                                                        .deterministic = true},
                                             .slots = 4,
                                             .kv_blocks = 16};

  // Runs steps on a chain of runners, each with some of the layers.
  struct Chain {
    SharedRowsList shared;
    std::vector<std::unique_ptr<Model>> models;
    std::vector<std::unique_ptr<StepRunner>> runners;

    Result<std::vector<float>> logits(StepBatch batch) {
      const StepBatch whole = batch;
      std::vector<float> own;
      std::span<const float> rows;
      for (size_t i = 0; i < runners.size(); ++i) {
        const bool last = i + 1 == runners.size();
        batch = whole;
        batch.entering = rows;
        if (!last) batch.logit_rows.clear(), batch.sampling.clear();
        HEARTH_ASSIGN(const StepTicket ticket, runners[i]->submit(batch));
        HEARTH_ASSIGN(const StepOutcome outcome, runners[i]->wait(ticket));
        if (shared.empty()) {
          own.assign(outcome.leaving.begin(), outcome.leaving.end());
          rows = own;
        } else if (rows = outcome.leaving; !last && !shared[i]->place_of(rows)) {
          return invalid("the rows are not in the memory that both devices share");
        }
      }
      return runners.back()->read_logits(static_cast<uint32_t>(whole.logit_rows.size()));
    }
  };

  Result<Chain> open_chain(const ModelFile& file, const std::vector<uint32_t>& layers,
                           bool shared = false) {
    Chain chain;
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(file));
    for (size_t i = 1; shared && i < layers.size(); ++i)
      chain.shared.push_back(
          SharedRows::allocate(StepBoundary::bytes(plan.config, bucket_size(kRunner.limits.rows))));
    uint32_t first = 0;
    for (const uint32_t count : layers) {
      HEARTH_ASSIGN(auto model, Model::load(device(), file,
                                            {.context = kRunner.limits.context,
                                             .held = {.first = first, .last = first + count}}));
      StepRunnerOptions options = kRunner;
      options.rows = rows_of_rank(chain.shared, static_cast<uint32_t>(chain.runners.size()));
      HEARTH_ASSIGN(auto runner, StepRunner::create(device(), pipelines(), *model, options));
      chain.models.push_back(std::move(model));
      chain.runners.push_back(std::move(runner));
      first += count;
    }
    return chain;
  }
};

StepBatch rank_step(uint32_t begin, uint32_t tokens, uint32_t vocabulary) {
  return ranks_step(begin, tokens, vocabulary, kRanksTables);
}

TEST_F(RanksTest, LogitsAreTheSameToTheLastBit) {
  const std::vector<SplitCase> cases{{ranks_model_path(), {}},
                                     {golden_models_folder() / "llama", {1, 1}},
                                     {golden_models_folder() / "gemma2", {1, 2}},
                                     {golden_models_folder() / "gemma3", {4, 1, 2}},
                                     {golden_models_folder() / "qwen3", {1, 1}},
                                     {golden_models_folder() / "phi3", {1, 1}}};
  for (SplitCase each : cases) {
    SCOPED_TRACE(each.model.filename().string());
    ASSERT_ASSIGN(const auto file, ModelFile::open(each.model));
    ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file));
    if (each.layers.empty()) each.layers = {plan.config.layers - 1, 1};
    ASSERT_ASSIGN(Chain whole, open_chain(*file, {plan.config.layers}));
    ASSERT_ASSIGN(Chain split, open_chain(*file, each.layers));
    // A prompt, more of it, and decodes.
    for (const auto& [begin, tokens] :
         std::vector<std::pair<uint32_t, uint32_t>>{{0, 9}, {9, 4}, {13, 1}, {14, 1}}) {
      const StepBatch batch = rank_step(begin, tokens, plan.config.vocabulary);
      ASSERT_ASSIGN(const std::vector<float> expected, whole.logits(batch));
      ASSERT_ASSIGN(const std::vector<float> logits, split.logits(batch));
      ASSERT_EQ(logits, expected) << tokens << " tokens at " << begin;
    }
  }
}

TEST_F(RanksTest, RowsInSharedMemoryGiveTheSameLogits) {
  if (device().caps().limits.host_import_alignment == 0)
    GTEST_SKIP() << "the driver has no VK_EXT_external_memory_host";
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "gemma3"));
  ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file));
  ASSERT_ASSIGN(Chain whole, open_chain(*file, {plan.config.layers}));
  ASSERT_ASSIGN(Chain split, open_chain(*file, {4, 1, 2}, true));
  for (const auto& [begin, tokens] :
       std::vector<std::pair<uint32_t, uint32_t>>{{0, 9}, {9, 4}, {13, 1}}) {
    const StepBatch batch = rank_step(begin, tokens, plan.config.vocabulary);
    ASSERT_ASSIGN(const std::vector<float> expected, whole.logits(batch));
    ASSERT_ASSIGN(const std::vector<float> logits, split.logits(batch));
    ASSERT_EQ(logits, expected) << tokens << " tokens at " << begin;
  }
}

TEST_F(RanksTest, EachRankHasItsShareOfWeightsAndKv) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(ranks_model_path()));
  ASSERT_ASSIGN(const ModelPlan whole, plan_model(*file));
  const uint32_t layers = whole.config.layers;
  ASSERT_GE(layers, 2u);
  ASSERT_ASSIGN(const ModelPlan first, plan_model(*file, {.first = 0, .last = 1}));
  ASSERT_ASSIGN(const ModelPlan rest, plan_model(*file, {.first = 1, .last = layers}));
  const auto has = [](const ModelPlan& plan, WeightRole role) {
    return std::ranges::any_of(plan.table.specs(),
                               [&](const WeightSpec& spec) { return spec.role == role; });
  };
  EXPECT_TRUE(has(first, WeightRole::kEmbedding));
  EXPECT_FALSE(has(first, WeightRole::kOutputNorm));
  EXPECT_FALSE(has(first, WeightRole::kOutput));
  EXPECT_TRUE(has(rest, WeightRole::kOutputNorm));
  for (const WeightSpec& spec : first.table.specs()) EXPECT_EQ(spec.layer, 0u);
  // A tied embedding is on both ends; nothing else is.
  const bool tied = has(rest, WeightRole::kEmbedding);
  uint64_t embedding = 0;
  for (const WeightSpec& spec : whole.table.specs())
    if (spec.role == WeightRole::kEmbedding)
      for (const SegmentPlan& segment : plan_segments(spec, *file))
        embedding += segment.device_bytes();
  EXPECT_EQ(first.weight_bytes + rest.weight_bytes, whole.weight_bytes + (tied ? embedding : 0));
  EXPECT_EQ(kv_bytes_per_block(first.config, KvFormat::kF16) * layers,
            kv_bytes_per_block(whole.config, KvFormat::kF16));
  EXPECT_EQ(first.parameters, whole.parameters);
  // What is loaded is what was planned.
  ASSERT_ASSIGN(const auto model,
                Model::load(device(), *file, {.context = 64, .held = {.first = 0, .last = 1}}));
  EXPECT_EQ(model->weights().bytes(), first.weight_bytes);
}

TEST_F(RanksTest, AStepMustBringTheRowsThatEnter) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(ranks_model_path()));
  ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file));
  ASSERT_ASSIGN(Chain split, open_chain(*file, {1, plan.config.layers - 1}));
  const StepBatch batch = rank_step(0, 2, 100);
  EXPECT_FALSE(split.runners[1]->submit(batch).ok());  // no rows
  EXPECT_FALSE(split.runners[0]->submit(batch).ok());  // logits of a rank without the last layer
}

TEST_F(RanksTest, SessionsGenerateTheSameTokensOnTwoAndThreeRanks) {
  SessionOptions options = ranks_session_options(RankSplit::kLayers);
  const auto expected = ranks_session_ids(options);
  ASSERT_EQ(expected.size(), 7u);
  for (const uint32_t ranks : {2u, 3u}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    SessionOptions split = on_ranks(options, ranks);
    EXPECT_EQ(ranks_session_ids(split), expected);
    split.ranks.parts = ranks;
    EXPECT_EQ(ranks_session_ids(split), expected) << "in parts";
  }
  options.speculation = {.method = SpeculationMethod::kNgram};
  EXPECT_EQ(ranks_session_ids(on_ranks(options, 2)), expected) << "with speculation";
}

TEST_F(RanksTest, ASessionSaysWhyRanksCannotStart) {
  const auto error_of = [](const SessionOptions& options) {
    auto file = ModelFile::open(ranks_model_path());
    const auto session = Session::open(std::move(*file), options);
    return session.ok() ? std::string() : session.error().message;
  };
  SessionOptions options{.context = 64, .max_sequences = 1};
  options.ranks.devices = {"0", "no such device"};
  EXPECT_NE(error_of(options).find("rank 1: "), std::string::npos) << error_of(options);
  options.ranks.devices.assign(20, "0");
  EXPECT_NE(error_of(options).find("cannot be divided"), std::string::npos);
  options.ranks.devices.assign(2, "0");
  options.ranks.layers = {1};
  EXPECT_NE(error_of(options).find("--layers needs one number per rank"), std::string::npos);
  options.ranks.layers = {};
  options.amateur = "x";
  EXPECT_NE(error_of(options).find("--amateur cannot be combined"), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
