// What the tests of models on several ranks share: ranks that meet within a step, on one device;
// steps for them; and sessions whose ids must not depend on how a model is divided.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_exchange.h"
#include "engine/session.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {

inline std::filesystem::path ranks_model_path() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "models" / "default" / "hearth-tiny-Q8_0.gguf";
}

// The runners of all ranks, each with its share of the model; or of one that has everything.
class MeetingRanks {
 public:
  // `share` says what a rank loads.
  static Result<std::unique_ptr<MeetingRanks>> open(
      Device& device, PipelineStore& pipelines, const ModelFile& file, uint32_t ranks,
      StepRunnerOptions options, const std::function<ModelOptions(uint32_t rank)>& share) {
    auto all = std::make_unique<MeetingRanks>();
    all->links_ = make_in_process_links(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      all->exchanges_.push_back(std::make_unique<LinkExchange>(*all->links_[rank]));
      options.exchange = all->exchanges_.back().get();
      ModelOptions loaded = share(rank);
      loaded.context = options.limits.context;
      HEARTH_ASSIGN(auto model, Model::load(device, file, loaded));
      HEARTH_ASSIGN(auto runner, StepRunner::create(device, pipelines, *model, options));
      all->models_.push_back(std::move(model));
      all->runners_.push_back(std::move(runner));
    }
    return all;
  }

  // Runs a step on all ranks and returns what the last one has.
  Result<std::vector<float>> logits(const StepBatch& batch) {
    HEARTH_TRY(run(batch, [](const StepOutcome&) {}));
    return runners_.back()->read_logits(static_cast<uint32_t>(batch.logit_rows.size()));
  }
  // The same for the step's pooled rows.
  Result<std::vector<float>> pooled(const StepBatch& batch) {
    std::vector<float> rows;
    HEARTH_TRY(run(batch, [&](const StepOutcome& outcome) {
      rows.assign(outcome.pooled.begin(), outcome.pooled.end());
    }));
    return rows;
  }

  // Acts as every rank, each on a thread of its own.
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
  // `read` gets the outcome of the last rank.
  Status run(const StepBatch& batch, const std::function<void(const StepOutcome&)>& read) {
    return on_all([&](size_t rank) -> Status {
      const Result<StepTicket> ticket = runners_[rank]->submit(batch);
      if (!ticket.ok()) {
        exchanges_[rank]->give_up(ticket.error());
        return ticket.error();
      }
      HEARTH_ASSIGN(const StepOutcome outcome, runners_[rank]->wait(*ticket));
      if (rank + 1 == runners_.size()) read(outcome);
      return {};
    });
  }

  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<LinkExchange>> exchanges_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<StepRunner>> runners_;
};

// A step of as many sequences as there are block tables, each with the next `tokens` of its text.
// `wanted` are the rows, counted from a sequence's last one, whose logits are wanted.
inline StepBatch ranks_step(uint32_t begin, uint32_t tokens, uint32_t vocabulary,
                            const std::vector<std::vector<uint32_t>>& tables,
                            const std::vector<uint32_t>& wanted = {0},
                            std::span<const uint32_t> parents = {}) {
  StepBatch batch;
  for (uint32_t sequence = 0; sequence < tables.size(); ++sequence) {
    std::vector<uint32_t> ids;
    for (uint32_t i = begin; i < begin + tokens; ++i)
      ids.push_back((7 * i + 31 * sequence + 3) % vocabulary);
    batch.add_sequence(begin, ids, tables[sequence], parents);
    for (const uint32_t row : wanted) batch.sample(batch.rows() - 1 - row, {});
  }
  return batch;
}

// Blocks of three sequences of up to 32 tokens.
inline const std::vector<std::vector<uint32_t>> kRanksTables = {{0, 1}, {2, 3}, {4, 5}};

// Blocks are few, so that requests preempt each other and swap.
inline SessionOptions ranks_session_options(RankSplit split) {
  const char* name = std::getenv("HEARTH_TEST_DEVICE");
  SessionOptions options{.context = 64,
                         .max_sequences = 4,
                         .max_step_tokens = 24,
                         .kv_blocks = 9,
                         .swap_bytes = 1 << 20,
                         .deterministic = true};
  options.policy.preemption = Preemption::kSwap;
  options.device = name == nullptr ? "0" : name;
  options.ranks.split = split;
  return options;
}

// The same on several ranks of that device.
inline SessionOptions on_ranks(SessionOptions options, size_t ranks) {
  options.ranks.devices.assign(ranks, options.device);
  return options;
}

// The ids of seven requests that preempt each other, share prefixes, fork and have biases and
// penalties.
inline std::vector<std::vector<TokenId>> ranks_session_ids(const SessionOptions& options) {
  auto file = ModelFile::open(ranks_model_path());
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

}  // namespace hearth::testing
