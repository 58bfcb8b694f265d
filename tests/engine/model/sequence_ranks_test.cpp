// A model whose KV blocks are dealt over ranks: logits, trees, blocks that move from rank to rank,
// ids under everything that the engine does, and memory per rank. The ranks here share one device.
#include <cstdlib>
#include <functional>
#include <thread>

#include <gmock/gmock.h>

#include "engine/memory_plan.h"
#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_exchange.h"
#include "engine/session.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/made_model.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

std::filesystem::path dealt_model_path() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "models" / "default" / "hearth-tiny-Q8_0.gguf";
}

struct DealtOptions {
  uint32_t ranks = 1;
  bool deterministic = true;
  KvFormat kv = KvFormat::kF16;
};

// The runners of all ranks, each with some of the blocks; or of one that has all of them.
class DealtModel {
 public:
  static Result<std::unique_ptr<DealtModel>> open(Device& device, PipelineStore& pipelines,
                                                  const ModelFile& file,
                                                  const DealtOptions& wanted) {
    auto dealt = std::make_unique<DealtModel>();
    dealt->links_ = make_in_process_links(wanted.ranks);
    for (uint32_t rank = 0; rank < wanted.ranks; ++rank) {
      StepRunnerOptions options{.limits = {.rows = 80,
                                           .sequences = 4,
                                           .logit_rows = 32,
                                           .context = 64,
                                           .kv = wanted.kv,
                                           .deterministic = wanted.deterministic},
                                .slots = 4,
                                .kv_blocks = 16,
                                .swap_blocks = 11};
      dealt->exchanges_.push_back(std::make_unique<LinkExchange>(*dealt->links_[rank]));
      options.exchange = dealt->exchanges_.back().get();
      HEARTH_ASSIGN(auto model, Model::load(device, file,
                                            {.context = options.limits.context,
                                             .deal = {.rank = rank, .ranks = wanted.ranks}}));
      HEARTH_ASSIGN(auto runner, StepRunner::create(device, pipelines, *model, options));
      dealt->models_.push_back(std::move(model));
      dealt->runners_.push_back(std::move(runner));
    }
    return dealt;
  }

  // Runs a step on all ranks and returns what the last one has.
  Result<std::vector<float>> logits(const StepBatch& batch) {
    const Status ran = on_all([&](size_t rank) -> Status {
      const Result<StepTicket> ticket = runners_[rank]->submit(batch);
      if (!ticket.ok()) {
        exchanges_[rank]->give_up(ticket.error());
        return ticket.error();
      }
      HEARTH_TRY(runners_[rank]->wait(*ticket));
      return {};
    });
    HEARTH_TRY(ran);
    return runners_.back()->read_logits(static_cast<uint32_t>(batch.logit_rows.size()));
  }

  Status on_all(const std::function<Status(size_t rank)>& act) {
    std::vector<Status> ended(runners_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < runners_.size(); ++rank)
      threads.emplace_back([&, rank] { ended[rank] = act(rank); });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : ended) HEARTH_TRY(status);
    return {};
  }

  StepRunner& runner(size_t rank) { return *runners_[rank]; }
  uint64_t weight_bytes(size_t rank) const { return models_[rank]->weights().bytes(); }

 private:
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<LinkExchange>> exchanges_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<StepRunner>> runners_;
};

// Blocks of three sequences. Of two ranks, one has all blocks of the second sequence; of three,
// one has all of the first.
using DealtTablesOfStep = std::vector<std::vector<uint32_t>>;
const DealtTablesOfStep kDealtTables = {{3, 0, 9, 12}, {4, 8, 6, 2}, {1, 5, 13, 7}};

StepBatch dealt_step(uint32_t begin, uint32_t tokens, uint32_t vocabulary,
                     const DealtTablesOfStep& tables = kDealtTables,
                     std::span<const uint32_t> parents = {}) {
  StepBatch batch;
  for (uint32_t sequence = 0; sequence < tables.size(); ++sequence) {
    std::vector<uint32_t> ids;
    for (uint32_t i = begin; i < begin + tokens; ++i)
      ids.push_back((7 * i + 31 * sequence + 3) % vocabulary);
    batch.add_sequence(begin, ids, tables[sequence], parents);
    batch.sample(batch.rows() - 1, {});
    if (tokens > 4) batch.sample(batch.rows() - 3, {});
  }
  return batch;
}

StepBatch without_logits(StepBatch batch) {
  batch.logit_rows.clear();
  batch.sampling.clear();
  return batch;
}

class SequenceRanksTest : public GpuTest {
 protected:
  struct Pair {
    std::unique_ptr<DealtModel> whole, dealt;
    uint32_t vocabulary = 0;
  };
  Pair open(const ModelFile& file, const DealtOptions& options) {
    DealtOptions alone = options;
    alone.ranks = 1;
    auto whole = DealtModel::open(device(), pipelines(), file, alone);
    auto dealt = DealtModel::open(device(), pipelines(), file, options);
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
  expect_close_logits(dealt_model_path(), {.ranks = 2});
  for (const char* name : {"llama", "qwen2", "qwen3", "phi3_long", "gemma2", "gemma3", "mixtral",
                           "qwen3moe", "gpt_oss"})
    expect_close_logits(golden_models_folder() / name, {.ranks = 2});
}

TEST_F(SequenceRanksTest, LogitsOfThreeRanksAreThoseOfOneDevice) {
  expect_close_logits(dealt_model_path(), {.ranks = 3});
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
    // A fork's second block is copied; all of the second sequence waits in host memory, and comes
    // back to other blocks.
    const std::vector<BlockMove> forks{{.from = 0, .to = 10}, {.from = 5, .to = 11}},
        out{{.from = 4, .to = 7}, {.from = 8, .to = 10}},
        in{{.from = 7, .to = 15}, {.from = 10, .to = 14}};
    for (DealtModel* model : {pair.whole.get(), pair.dealt.get()}) {
      ASSERT_OK(model->on_all([&](size_t rank) { return model->runner(rank).swap_out(out); }));
      // What was there is overwritten.
      ASSERT_OK(model->on_all([&](size_t rank) {
        return model->runner(rank).fork_blocks(
            std::vector<BlockMove>{{.from = 1, .to = 4}, {.from = 1, .to = 8}});
      }));
      ASSERT_OK(model->on_all([&](size_t rank) { return model->runner(rank).swap_in(in); }));
      ASSERT_OK(model->on_all([&](size_t rank) { return model->runner(rank).fork_blocks(forks); }));
    }
    const DealtTablesOfStep moved{{3, 10, 9}, {15, 14, 6}, {1, 11, 13}};
    expect_close(pair, dealt_step(24, 9, pair.vocabulary, moved), limit);
  }
}

// More moves than leave or enter a device together, in both directions.
TEST_F(SequenceRanksTest, ManyBlocksMoveAtOnce) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
  ASSERT_ASSIGN(const auto dealt, DealtModel::open(device(), pipelines(), *file, {.ranks = 2}));
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
  ASSERT_ASSIGN(const auto file, ModelFile::open(dealt_model_path()));
  ASSERT_ASSIGN(const auto whole, DealtModel::open(device(), pipelines(), *file, {}));
  ASSERT_ASSIGN(const auto dealt, DealtModel::open(device(), pipelines(), *file, {.ranks = 2}));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const auto share = static_cast<double>(dealt->runner(rank).kv().bytes());
    EXPECT_NEAR(share * 2 / static_cast<double>(whole->runner(0).kv().bytes()), 1, 0.03);
    ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file, {}, {}, {.rank = rank, .ranks = 2}));
    EXPECT_EQ(dealt->weight_bytes(rank), plan.weight_bytes);
  }
}

TEST_F(SequenceRanksTest, ARankNeedsTheOthers) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
  ASSERT_ASSIGN(const auto model, Model::load(device(), *file, {.deal = {.ranks = 2}}));
  EXPECT_FALSE(StepRunner::create(device(), pipelines(), *model, {.kv_blocks = 4}).ok());
}

SessionOptions dealt_session_options() {
  const char* name = std::getenv("HEARTH_TEST_DEVICE");
  SessionOptions options{.context = 64,
                         .max_sequences = 4,
                         .max_step_tokens = 24,
                         .kv_blocks = 9,
                         .swap_bytes = 1 << 20,
                         .deterministic = true};
  options.policy.preemption = Preemption::kSwap;
  options.device = name == nullptr ? "0" : name;
  options.ranks.split = RankSplit::kSequence;
  return options;
}

// Requests that preempt each other, share prefixes, fork and have biases and penalties.
std::vector<std::vector<TokenId>> dealt_ids(const SessionOptions& options) {
  auto file = ModelFile::open(dealt_model_path());
  EXPECT_TRUE(file.ok());
  auto session = Session::open(std::move(*file), options);
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok()) return {};
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 6; ++i) {
    GenerationRequest request;
    request.prompt = {1};
    for (uint32_t j = 0; j < 4 + 7 * i; ++j)
      request.prompt.push_back(3 + (i % 2 * 5 + j * 11) % 200);
    request.max_tokens = 14;
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    request.sampling.seed = i;
    if (i % 3 == 1) request.sampling.repetition_penalty = 1.2f;
    if (i == 4) request.biases = {{.token = 5, .bias = 2.0f}};
    auto submitted = (*session)->engine().submit_n(request, i == 3 ? 2 : 1);
    EXPECT_TRUE(submitted.ok());
    if (!submitted.ok()) return {};
    for (TokenStream& stream : *submitted) streams.push_back(std::move(stream));
  }
  std::vector<std::vector<TokenId>> ids;
  for (TokenStream& stream : streams) {
    ids.push_back(read_ids(stream));
    EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
  }
  return ids;
}

TEST_F(SequenceRanksTest, SessionsGenerateTheSameTokens) {
  SessionOptions options = dealt_session_options();
  const auto expected = dealt_ids(options);
  ASSERT_EQ(expected.size(), 7u);
  for (const size_t ranks : {2, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    SessionOptions divided = options;
    divided.ranks.devices.assign(ranks, options.device);
    EXPECT_EQ(dealt_ids(divided), expected);
    divided.policy.preemption = Preemption::kRecompute;
    divided.speculation = {.method = SpeculationMethod::kNgram};
    EXPECT_EQ(dealt_ids(divided), expected) << "with speculation, and without swaps";
  }
}

// The draft model has a pool of its own, on the first rank alone.
TEST_F(SequenceRanksTest, TreesOfADraftModelChangeNothing) {
  SessionOptions options = dealt_session_options();
  const auto expected = dealt_ids(options);
  options.ranks.devices.assign(2, options.device);
  options.speculation = {.method = SpeculationMethod::kTree};
  options.draft_model = dealt_model_path().string();
  EXPECT_EQ(dealt_ids(options), expected);
}

// The pool of two ranks is twice that of one with the same memory, and so is the context.
TEST_F(SequenceRanksTest, ALongerContextFits) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(dealt_model_path()));
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
