// A model whose layers are divided over ranks: logits, ids under everything that the engine does,
// memory per rank, and what cannot be divided. The ranks here share one device.
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>

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

using ::testing::HasSubstr;

std::filesystem::path sharded_model_path() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "models" / "default" / "hearth-tiny-Q8_0.gguf";
}

// The runners of all ranks, each with its share of every layer; or of one that has everything.
class ShardedModel {
 public:
  static Result<std::unique_ptr<ShardedModel>> open(Device& device, PipelineStore& pipelines,
                                                    const ModelFile& file, uint32_t ranks) {
    auto sharded = std::make_unique<ShardedModel>();
    sharded->links_ = make_in_process_links(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      StepRunnerOptions options{.limits = {.rows = 32,
                                           .sequences = 4,
                                           .logit_rows = 32,
                                           .context = 64,
                                           .deterministic = true},
                                .slots = 4,
                                .kv_blocks = 16};
      sharded->exchanges_.push_back(std::make_unique<LinkExchange>(*sharded->links_[rank]));
      options.exchange = sharded->exchanges_.back().get();
      HEARTH_ASSIGN(auto model, Model::load(device, file,
                                            {.context = options.limits.context,
                                             .shard = {.index = rank, .count = ranks}}));
      HEARTH_ASSIGN(auto runner, StepRunner::create(device, pipelines, *model, options));
      sharded->models_.push_back(std::move(model));
      sharded->runners_.push_back(std::move(runner));
    }
    return sharded;
  }

  // Runs a step on all ranks and returns what the last one has.
  Result<std::vector<float>> logits(const StepBatch& batch) {
    std::vector<Status> ended(runners_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < runners_.size(); ++rank)
      threads.emplace_back([&, rank] { ended[rank] = run(rank, batch); });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : ended) HEARTH_TRY(status);
    return runners_.back()->read_logits(static_cast<uint32_t>(batch.logit_rows.size()));
  }

 private:
  Status run(size_t rank, const StepBatch& batch) {
    const Result<StepTicket> ticket = runners_[rank]->submit(batch);
    if (!ticket.ok()) {
      exchanges_[rank]->give_up(ticket.error());
      return ticket.error();
    }
    HEARTH_TRY(runners_[rank]->wait(*ticket));
    return {};
  }

  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<LinkExchange>> exchanges_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<StepRunner>> runners_;
};

StepBatch sharded_step(uint32_t begin, uint32_t tokens, uint32_t vocabulary, bool sampled = true) {
  StepBatch batch;
  for (uint32_t sequence = 0; sequence < 3; ++sequence) {
    std::vector<uint32_t> ids;
    for (uint32_t i = begin; i < begin + tokens; ++i)
      ids.push_back((7 * i + 31 * sequence + 3) % vocabulary);
    batch.add_sequence(begin, ids, std::vector<uint32_t>{2 * sequence, 2 * sequence + 1});
    if (sampled) batch.sample(batch.rows() - 1, {});
  }
  return batch;
}

class TensorRanksTest : public GpuTest {
 protected:
  void expect_close_logits(const std::filesystem::path& path, uint32_t ranks) {
    SCOPED_TRACE(path.filename().string());
    ASSERT_ASSIGN(const auto file, ModelFile::open(path));
    expect_close_logits(*file, ranks);
  }

  void expect_close_logits(const ModelFile& file, uint32_t ranks) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    ASSERT_ASSIGN(const auto whole, ShardedModel::open(device(), pipelines(), file, 1));
    ASSERT_ASSIGN(const auto sharded, ShardedModel::open(device(), pipelines(), file, ranks));
    ASSERT_ASSIGN(const ModelPlan plan, plan_model(file));
    const uint32_t vocabulary = plan.config.vocabulary;
    // A prompt, more of it, some of it without logits, and decodes.
    for (const auto& [begin, tokens] :
         std::vector<std::pair<uint32_t, uint32_t>>{{0, 9}, {9, 3}, {12, 2}, {14, 1}, {15, 1}}) {
      const StepBatch batch = sharded_step(begin, tokens, vocabulary, tokens != 3);
      ASSERT_ASSIGN(const std::vector<float> expected, whole->logits(batch));
      ASSERT_ASSIGN(const std::vector<float> logits, sharded->logits(batch));
      if (tokens == 3) continue;
      EXPECT_LT(nmse(logits, std::vector<double>(expected.begin(), expected.end())), 1e-6)
          << tokens << " tokens at " << begin;
    }
  }
};

TEST_F(TensorRanksTest, LogitsOfTwoRanksAreThoseOfOneDevice) {
  expect_close_logits(sharded_model_path(), 2);
  for (const char* name : {"llama", "qwen2", "qwen3", "phi3_long", "gemma2", "gemma3", "mixtral",
                           "qwen3moe", "gpt_oss"})
    expect_close_logits(golden_models_folder() / name, 2);
}

TEST_F(TensorRanksTest, FourKvHeadsOnThreeRanks) {
  expect_close_logits(golden_models_folder() / "phi3_long", 3);
}

// Columns are cut between blocks, and biases are added once.
TEST_F(TensorRanksTest, QuantizedWeightsAndExpertsAreCutBetweenBlocks) {
  for (const auto& [architecture, format] :
       std::vector<std::pair<std::string, WeightFormat>>{{"llama", WeightFormat::kQ4K},
                                                         {"phi3", WeightFormat::kQ5_0},
                                                         {"qwen3moe", WeightFormat::kQ4K},
                                                         {"gpt-oss", WeightFormat::kMxfp4}}) {
    SCOPED_TRACE(architecture);
    MadeModelInfo info = small_model(architecture);
    info.width = 256;
    info.head_size = 64;
    info.heads = 8;
    info.mlp_width = 768;  // 3 blocks of 256
    info.optional_weights = architecture == "gpt-oss";
    info.format = [&](const std::string& tensor) {
      return tensor.find("ffn_gate_inp") == std::string::npos ? format : WeightFormat::kF32;
    };
    ASSERT_ASSIGN(const auto file, MadeModel::random(info));
    expect_close_logits(*file, 2);
  }
}

TEST_F(TensorRanksTest, AShareNeedsTheOtherRanks) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden_models_folder() / "llama"));
  ASSERT_ASSIGN(const auto model, Model::load(device(), *file, {.shard = {.count = 2}}));
  EXPECT_FALSE(StepRunner::create(device(), pipelines(), *model, {.kv_blocks = 4}).ok());
}

TEST_F(TensorRanksTest, WhatIsLoadedIsWhatWasPlanned) {
  ASSERT_ASSIGN(const auto file, ModelFile::open(sharded_model_path()));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const TensorShard shard{.index = rank, .count = 2};
    ASSERT_ASSIGN(const ModelPlan plan, plan_model(*file, {}, shard));
    ASSERT_ASSIGN(const auto model, Model::load(device(), *file, {.shard = shard}));
    EXPECT_EQ(model->weights().bytes(), plan.weight_bytes);
  }
}

SessionOptions sharded_session_options() {
  const char* name = std::getenv("HEARTH_TEST_DEVICE");
  SessionOptions options{.context = 64,
                         .max_sequences = 4,
                         .max_step_tokens = 24,
                         .kv_blocks = 9,
                         .swap_bytes = 1 << 20,
                         .deterministic = true};
  options.policy.preemption = Preemption::kSwap;
  options.device = name == nullptr ? "0" : name;
  options.ranks.split = RankSplit::kTensor;
  return options;
}

// Requests that preempt each other, share prefixes, fork and have biases and penalties.
std::vector<std::vector<TokenId>> sharded_ids(const SessionOptions& options) {
  auto file = ModelFile::open(sharded_model_path());
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

TEST_F(TensorRanksTest, SessionsGenerateTheSameTokens) {
  SessionOptions options = sharded_session_options();
  const auto expected = sharded_ids(options);
  ASSERT_EQ(expected.size(), 7u);
  options.ranks.devices.assign(2, options.device);
  EXPECT_EQ(sharded_ids(options), expected);
  options.policy.preemption = Preemption::kRecompute;
  options.speculation = {.method = SpeculationMethod::kNgram};
  EXPECT_EQ(sharded_ids(options), expected) << "with speculation, and without swaps";
}

TEST_F(TensorRanksTest, ASessionSaysWhatCannotBeDivided) {
  SessionOptions options = sharded_session_options();
  options.ranks.devices.assign(40, options.device);
  auto file = ModelFile::open(sharded_model_path());
  ASSERT_TRUE(file.ok());
  const auto session = Session::open(std::move(*file), options);
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.error().message, HasSubstr("cannot be divided over 40 ranks"));
}

}  // namespace
}  // namespace hearth::testing
