// A model whose KV blocks are dealt over ranks: logits, trees, blocks that move from rank to rank,
// ids under everything that the engine does, and memory per rank. The ranks here share one device.
#include "engine/memory_plan.h"
#include "engine/session.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/made_model.h"
#include "tests/support/rank_models.h"

namespace hearth::testing {
namespace {

struct DealtOptions {
  uint32_t ranks = 1;
  bool deterministic = true;
  KvFormat kv = KvFormat::kF16;
};

Result<std::unique_ptr<MeetingRanks>> open_dealt(Device& device, PipelineStore& pipelines,
                                                 const ModelFile& file,
                                                 const DealtOptions& wanted) {
  return MeetingRanks::open(
      device, pipelines, file, wanted.ranks,
      {.limits = {.rows = 80,
                  .sequences = 4,
                  .logit_rows = 32,
                  .context = 64,
                  .kv = wanted.kv,
                  .deterministic = wanted.deterministic},
       .slots = 4,
       .kv_blocks = 16,
       .swap_blocks = 11},
      [&](uint32_t rank) { return ModelOptions{.deal = {.rank = rank, .ranks = wanted.ranks}}; });
}

// Blocks of three sequences. Of two ranks, one has all blocks of the second sequence; of three,
// one has all of the first.
using DealtTablesOfStep = std::vector<std::vector<uint32_t>>;
const DealtTablesOfStep kDealtTables = {{3, 0, 9, 12}, {4, 8, 6, 2}, {1, 5, 13, 7}};

StepBatch dealt_step(uint32_t begin, uint32_t tokens, uint32_t vocabulary,
                     const DealtTablesOfStep& tables = kDealtTables,
                     std::span<const uint32_t> parents = {}) {
  return ranks_step(begin, tokens, vocabulary, tables,
                    tokens > 4 ? std::vector<uint32_t>{0, 2} : std::vector<uint32_t>{0}, parents);
}

StepBatch without_logits(StepBatch batch) {
  batch.logit_rows.clear();
  batch.sampling.clear();
  return batch;
}

class SequenceRanksTest : public GpuTest {
 protected:
  struct Pair {
    std::unique_ptr<MeetingRanks> whole, dealt;
    uint32_t vocabulary = 0;
  };
  Pair open(const ModelFile& file, const DealtOptions& options) {
    DealtOptions alone = options;
    alone.ranks = 1;
    auto whole = open_dealt(device(), pipelines(), file, alone);
    auto dealt = open_dealt(device(), pipelines(), file, options);
    EXPECT_TRUE(whole.ok() && dealt.ok());
    if (!whole.ok() || !dealt.ok()) return {};
    const auto plan = plan_model(file);
    return {std::move(*whole), std::move(*dealt), plan.ok() ? plan->config.vocabulary : 0};
  }

  static void expect_close(const Pair& pair, const StepBatch& batch, double limit = 1e-6) {
    const auto expected = pair.whole->logits(batch), logits = pair.dealt->logits(batch);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    if (batch.logit_rows.empty()) return;
    EXPECT_LT(nmse(*logits, std::vector<double>(expected->begin(), expected->end())), limit)
        << batch.sequences.front().rows << " tokens at " << batch.sequences.front().first_position;
  }

  void expect_close_logits(const std::filesystem::path& path, const DealtOptions& options) {
    SCOPED_TRACE(path.filename().string() + " on " + std::to_string(options.ranks) + " ranks");
    ASSERT_ASSIGN(const auto file, ModelFile::open(path));
    const Pair pair = open(*file, options);
    ASSERT_GT(pair.vocabulary, 0u);
    // A prompt, more of it, some of it without logits, decodes, and a tree.
    for (const auto& [begin, tokens] :
         std::vector<std::pair<uint32_t, uint32_t>>{{0, 21}, {24, 13}, {37, 2}, {39, 1}, {40, 1}}) {
      if (begin == 24) expect_close(pair, without_logits(dealt_step(21, 3, pair.vocabulary)));
      expect_close(pair, dealt_step(begin, tokens, pair.vocabulary));
    }
    const std::vector<uint32_t> parents{kTreeRoot, 0, kTreeRoot, 1, 2, 0, 4, 3, 6, 4};
    expect_close(pair, dealt_step(41, 11, pair.vocabulary, kDealtTables, parents));
  }
};

TEST_F(SequenceRanksTest, LogitsOfTwoRanksAreThoseOfOneDevice) {
  expect_close_logits(ranks_model_path(), {.ranks = 2});
  for (const char* name : {"llama", "qwen2", "qwen3", "phi3_long", "gemma2", "gemma3", "mixtral",
                           "qwen3moe", "gpt_oss"})
    expect_close_logits(golden_models_folder() / name, {.ranks = 2});
}

TEST_F(SequenceRanksTest, LogitsOfThreeRanksAreThoseOfOneDevice) {
  expect_close_logits(ranks_model_path(), {.ranks = 3});
  for (const char* name : {"llama", "gemma3", "gpt_oss"})
    expect_close_logits(golden_models_folder() / name, {.ranks = 3});
}

TEST_F(SequenceRanksTest, KernelsThatAreNotDeterministic) {
  for (const char* name : {"llama", "gemma2", "gpt_oss"})
    expect_close_logits(golden_models_folder() / name, {.ranks = 2, .deterministic = false});
}

// Blocks are copied, swapped out and swapped in, to their own rank and to others.
TEST_F(SequenceRanksTest, BlocksMoveFromRankToRank) {
  for (const auto& [ranks, kv] : std::vector<std::pair<uint32_t, KvFormat>>{
           {2, KvFormat::kF16}, {3, KvFormat::kF16}, {2, KvFormat::kQ8_0}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
    const Pair pair = open(*file, {.ranks = ranks, .kv = kv});
    // Eight bits are sometimes rounded the other way.
    const double limit = kv == KvFormat::kF16 ? 1e-6 : 1e-4;
    expect_close(pair, dealt_step(0, 24, pair.vocabulary), limit);
    // A fork's second block is copied, and the block of another twice, the second time from the
    // copy; all of the second sequence waits in host memory, and comes back to other blocks.
    const std::vector<BlockMove> first_copy{{.from = 0, .to = 7}},
        forks{{.from = 7, .to = 10}, {.from = 5, .to = 11}},
        out{{.from = 4, .to = 7}, {.from = 8, .to = 10}},
        in{{.from = 7, .to = 15}, {.from = 10, .to = 14}};
    for (MeetingRanks* model : {pair.whole.get(), pair.dealt.get()}) {
      ASSERT_OK(model->on_all([&](size_t rank) { return model->runner(rank).swap_out(out); }));
      // What was there is overwritten.
      ASSERT_OK(model->on_all([&](size_t rank) {
        return model->runner(rank).fork_blocks(
            std::vector<BlockMove>{{.from = 1, .to = 4}, {.from = 1, .to = 8}});
      }));
      ASSERT_OK(model->on_all([&](size_t rank) { return model->runner(rank).swap_in(in); }));
      for (const std::vector<BlockMove>& copies : {first_copy, forks})
        ASSERT_OK(
            model->on_all([&](size_t rank) { return model->runner(rank).fork_blocks(copies); }));
    }
    const DealtTablesOfStep moved{{3, 10, 9}, {15, 14, 6}, {1, 11, 13}};
    expect_close(pair, dealt_step(24, 9, pair.vocabulary, moved), limit);
  }
}

// More moves than leave or enter a device together, in both directions.
TEST_F(SequenceRanksTest, ManyBlocksMoveAtOnce) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
  ASSERT_ASSIGN(const auto dealt, open_dealt(device(), pipelines(), *file, {.ranks = 2}));
  std::vector<BlockMove> out, in;
  for (uint32_t i = 0; i < 10; ++i) {
    out.push_back({.from = i, .to = (i + 1) % 11});
    in.push_back({.from = (i + 1) % 11, .to = i});
  }
  const DealtTablesOfStep tables{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}};
  ASSERT_ASSIGN(const auto plan, plan_model(*file));
  const uint32_t vocabulary = plan.config.vocabulary;
  ASSERT_OK(dealt->logits(dealt_step(0, 24, vocabulary, tables)));
  ASSERT_ASSIGN(const auto expected, dealt->logits(dealt_step(24, 2, vocabulary, tables)));
  ASSERT_OK(dealt->on_all([&](size_t rank) { return dealt->runner(rank).swap_out(out); }));
  ASSERT_OK(dealt->logits(dealt_step(0, 20, vocabulary, {{0, 1}, {3, 4}, {6, 7}})));
  ASSERT_OK(dealt->on_all([&](size_t rank) { return dealt->runner(rank).swap_in(in); }));
  ASSERT_ASSIGN(const auto logits, dealt->logits(dealt_step(24, 2, vocabulary, tables)));
  EXPECT_EQ(logits, expected);
}

TEST_F(SequenceRanksTest, EveryRankHasItsPartOfTheBlocks) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(ranks_model_path()));
  ASSERT_ASSIGN(const auto whole, open_dealt(device(), pipelines(), *file, {}));
  ASSERT_ASSIGN(const auto dealt, open_dealt(device(), pipelines(), *file, {.ranks = 2}));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const auto share = static_cast<double>(dealt->runner(rank).kv().bytes());
    EXPECT_NEAR(share * 2 / static_cast<double>(whole->runner(0).kv().bytes()), 1, 0.03);
    ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file, {}, {}, {.rank = rank, .ranks = 2}));
    EXPECT_EQ(dealt->weight_bytes(rank), plan.weight_bytes);
  }
}

// Blocks that only pass through host memory count, on every rank.
TEST_F(SequenceRanksTest, TheSwapLimitIncludesStagedBlocks) {
  const SessionOptions options = on_ranks(ranks_session_options(RankSplit::kSequence), 2);
  ASSERT_ASSIGN(auto file, ModelFile::open(ranks_model_path()));
  ASSERT_ASSIGN(const auto session, Session::open(std::move(file), options));
  const uint64_t limit = options.swap_bytes / (2 * session->memory().kv_bytes_per_block);
  const uint32_t staged = staged_blocks({.ranks = 2});
  EXPECT_GT(staged, 0u);
  EXPECT_EQ(session->runner().options().swap_blocks, limit - 2 * staged);
  // A rank's largest allocation has room for them, too.
  EXPECT_EQ(
      dealt_host_blocks({.ranks = 2}, static_cast<uint32_t>(most_swap_blocks({.ranks = 2}, 50))),
      50u);
  EXPECT_EQ(most_swap_blocks({.ranks = 2}, staged), 0u);
}

TEST_F(SequenceRanksTest, ARankNeedsTheOthers) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
  ASSERT_ASSIGN(const auto model, Model::load(device(), *file, {.deal = {.ranks = 2}}));
  EXPECT_FALSE(StepRunner::create(device(), pipelines(), *model, {.kv_blocks = 4}).ok());
}

TEST_F(SequenceRanksTest, SessionsGenerateTheSameTokens) {
  const SessionOptions options = ranks_session_options(RankSplit::kSequence);
  const auto expected = ranks_session_ids(options);
  ASSERT_EQ(expected.size(), 7u);
  for (const size_t ranks : {2, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    SessionOptions divided = on_ranks(options, ranks);
    EXPECT_EQ(ranks_session_ids(divided), expected);
    divided.policy.preemption = Preemption::kRecompute;
    divided.speculation = {.method = SpeculationMethod::kNgram};
    EXPECT_EQ(ranks_session_ids(divided), expected) << "with speculation, and without swaps";
  }
}

// The draft model has a pool of its own, on the first rank alone.
TEST_F(SequenceRanksTest, TreesOfADraftModelChangeNothing) {
  SessionOptions options = ranks_session_options(RankSplit::kSequence);
  const auto expected = ranks_session_ids(options);
  options = on_ranks(options, 2);
  options.speculation = {.method = SpeculationMethod::kTree};
  options.draft_model = ranks_model_path().string();
  EXPECT_EQ(ranks_session_ids(options), expected);
}

// The pool of two ranks is twice that of one with the same memory, and so is the context.
TEST_F(SequenceRanksTest, ALongerContextFits) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(ranks_model_path()));
  MemoryRequest request{.limits = {.rows = 24, .sequences = 4, .context = 64}};
  ASSERT_ASSIGN(const ModelPlan whole, plan_model(*file));
  ASSERT_ASSIGN(const ModelPlan dealt, plan_model(*file, {}, {}, {.rank = 1, .ranks = 2}));
  const DeviceCaps& caps = device().caps();
  request.kv_blocks = 1u << 20;
  const MemoryPlan fixed = plan_memory(caps, 0, whole, request);
  const MemoryPlan dealt_fixed = plan_memory(caps, 0, dealt, request);
  const uint64_t room = 40 * fixed.kv_bytes_per_block;  // for 40 blocks, more or less
  const auto free_bytes = [&](const MemoryPlan& plan) {
    return (plan.weight_bytes + plan.activation_bytes + room) * 20 / 19 + 20;
  };
  const MemoryPlan one = plan_memory(caps, free_bytes(fixed), whole, request);
  const MemoryPlan two = plan_memory(caps, free_bytes(dealt_fixed), dealt, request);
  EXPECT_EQ(two.kv_bytes_per_block * 2, one.kv_bytes_per_block);
  EXPECT_NEAR(two.kv_blocks, 2.0 * one.kv_blocks, 2);
  EXPECT_NEAR(one.kv_blocks, 40, 1);
  EXPECT_EQ(two.kv_blocks % 2, 0u);
}

}  // namespace
}  // namespace hearth::testing
