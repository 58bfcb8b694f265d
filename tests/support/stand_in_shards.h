// Ranks that divide every layer, without a GPU. Each contributes to the sum of a step's hidden rows
// what it has of the ids, and the last one, a stand-in executor, takes its ids from the sum. So an
// id that arrives late at any rank, or the rows of another step, change the answer.
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_exchange.h"
#include "engine/ranks/rank_executor.h"
#include "engine/ranks/shard_loop.h"
#include "tests/support/stand_in_executor.h"

namespace hearth::testing {

class StandInShare final : public StepExecutor {
 public:
  // Only the last rank has an executor.
  StandInShare(Link& link, LinkExchange& exchange, StandInExecutor* executor)
      : link_(link), exchange_(exchange), executor_(executor) {}

  Result<StepTicket> submit(const StepBatch& batch) override {
    if (faults.submit.should_fail()) return Error{ErrorKind::kOutOfMemory, "a share has no room"};
    batch_ = batch;
    std::vector<float> own, total(batch.rows());
    // A rank has every id whose remainder is its number.
    for (const uint32_t id : batch.ids) {
      EXPECT_EQ(id & params::kSampledId, 0u);
      own.push_back(id % link_.ranks() == link_.rank() ? static_cast<float>(id) : 0.0f);
    }
    HEARTH_TRY(exchange_.sum(own, total));
    for (size_t row = 0; row < total.size(); ++row)
      batch_.ids[row] = static_cast<uint32_t>(total[row]);
    EXPECT_EQ(batch_.ids, batch.ids) << "the ranks have different ids";
    EXPECT_EQ(batch.logit_rows.size(), batch.sampling.size());
    return executor_ != nullptr ? executor_->submit(batch_) : StepTicket{};
  }
  Result<StepOutcome> wait(const StepTicket& ticket) override {
    return executor_ != nullptr ? executor_->wait(ticket) : StepOutcome{};
  }
  Status fork_blocks(std::span<const BlockMove> moves) override {
    return executor_ != nullptr ? executor_->fork_blocks(moves) : Status();
  }
  Status swap_out(std::span<const BlockMove> moves) override {
    if (faults.swap.should_fail()) return Error{ErrorKind::kOutOfMemory, "a share cannot swap"};
    if (receives_from) HEARTH_TRY(exchange_.receive_block(*receives_from));
    return executor_ != nullptr ? executor_->swap_out(moves) : Status();
  }
  Status swap_in(std::span<const BlockMove> moves) override {
    return executor_ != nullptr ? executor_->swap_in(moves) : Status();
  }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    EXPECT_NE(executor_, nullptr) << "only the last rank has histories";
    return executor_->set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    EXPECT_NE(executor_, nullptr) << "only the last rank has biases";
    return executor_->set_biases(slot, biases);
  }

  struct {
    FaultSwitch submit, swap;
  } faults;
  std::optional<uint32_t> receives_from;  // a rank, whenever blocks are swapped out

 private:
  Link& link_;
  LinkExchange& exchange_;
  StandInExecutor* const executor_;
  StepBatch batch_;
};

// Ranks as threads, and the executor that an engine uses.
class StandInShards {
 public:
  StandInShards(const StandInOptions& options, uint32_t ranks)
      : links_(make_in_process_links(ranks)), last_(options) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      exchanges_.push_back(std::make_unique<LinkExchange>(*links_[rank]));
      shares_.push_back(std::make_unique<StandInShare>(*links_[rank], *exchanges_[rank],
                                                       rank + 1 == ranks ? &last_ : nullptr));
    }
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads_.emplace_back([this, rank] {
        static_cast<void>(ShardLoop(*links_[rank], *shares_[rank], *exchanges_[rank]).run().ok());
      });
    executor_ = std::make_unique<RankExecutor>(
        *links_[0],
        RankExecutorOptions{
            .slots = options.limits.max_sequences, .block_bytes = 1, .whole_steps = true});
  }
  ~StandInShards() {
    executor_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  RankExecutor& executor() { return *executor_; }
  StandInShare& share(uint32_t rank) { return *shares_[rank]; }
  StandInExecutor& last() { return last_; }
  Link& link(uint32_t rank) { return *links_[rank]; }

 private:
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<LinkExchange>> exchanges_;
  StandInExecutor last_;
  std::vector<std::unique_ptr<StandInShare>> shares_;
  std::vector<std::thread> threads_;
  std::unique_ptr<RankExecutor> executor_;
};

}  // namespace hearth::testing
