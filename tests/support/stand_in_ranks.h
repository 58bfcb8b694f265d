// A pipeline of ranks without a GPU: the last rank is a stand-in executor, which takes its token
// ids from the hidden rows that the ranks before it passed on. So an id that arrives late at the
// first rank, or rows of another step, change the answer.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/ranks/in_process_link.h"
#include "engine/ranks/rank_executor.h"
#include "engine/ranks/rank_loop.h"
#include "tests/support/stand_in_executor.h"

namespace hearth::testing {

// A row has the low and the high half of its id, and the number of ranks it has passed.
inline constexpr size_t kRankRowWidth = 3;

// The rows that entered a step, which must stay as they are until it is done: a device may read
// them late. REQUIRES: they live that long, as rows in shared memory do.
class EnteredRows {
 public:
  void keep(std::span<const float> rows) {
    rows_ = rows;
    copy_.assign(rows.begin(), rows.end());
  }
  void check() const {
    EXPECT_TRUE(std::ranges::equal(rows_, copy_)) << "rows were overwritten before they were read";
  }

 private:
  std::span<const float> rows_;
  std::vector<float> copy_;
};

// A rank that is not the last.
class StandInStage final : public StepExecutor {
 public:
  StandInStage(bool first, const RankRows& shared) : first_(first), shared_(shared) {}

  Result<StepTicket> submit(const StepBatch& batch) override {
    EXPECT_TRUE(batch.logit_rows.empty()) << "only the last rank samples";
    std::vector<float>& rows = rows_[copy_];
    rows.assign(batch.entering.begin(), batch.entering.end());
    if (first_) {
      EXPECT_TRUE(batch.entering.empty());
      for (const uint32_t id : batch.ids) {
        EXPECT_EQ(id & params::kSampledId, 0u);
        rows.insert(rows.end(), {static_cast<float>(id & 0xffff), static_cast<float>(id >> 16), 0});
      }
      rows.resize(batch.rows() * kRankRowWidth);
    }
    EXPECT_EQ(rows.size(), batch.rows() * kRankRowWidth);
    for (size_t i = 2; i < rows.size(); i += kRankRowWidth) ++rows[i];
    if (shared_.entering != nullptr) entered_[copy_].keep(batch.entering);
    if (shared_.leaving != nullptr)
      std::memcpy(shared_.leaving->place(copy_).data(), rows.data(), rows.size() * sizeof(float));
    const StepTicket ticket{.copy = copy_};
    copy_ = (copy_ + 1) % kStepsInFlight;
    return ticket;
  }
  Result<StepOutcome> wait(const StepTicket& ticket) override {
    if (faults.wait.should_fail()) return Error{ErrorKind::kOutOfMemory, "the stage has no room"};
    entered_[ticket.copy].check();
    std::span<const float> leaving = rows_[ticket.copy];
    if (shared_.leaving != nullptr) leaving = shared_.leaving->rows(ticket.copy, leaving.size());
    return StepOutcome{.leaving = leaving};
  }
  Status fork_blocks(std::span<const BlockMove>) override { return {}; }
  Status swap_out(std::span<const BlockMove>) override { return {}; }
  Status swap_in(std::span<const BlockMove>) override { return {}; }
  Status set_history(uint32_t, std::span<const params::TokenCount>) override {
    return invalid("only the last rank has histories");
  }
  Status set_biases(uint32_t, std::span<const params::TokenBias>) override {
    return invalid("only the last rank has biases");
  }

  struct {
    FaultSwitch wait;
  } faults;

 private:
  const bool first_;
  const RankRows shared_;
  std::array<std::vector<float>, kStepsInFlight> rows_;
  std::array<EnteredRows, kStepsInFlight> entered_;
  size_t copy_ = 0;
};

class StandInLastStage final : public StepExecutor {
 public:
  StandInLastStage(const StandInOptions& options, uint32_t ranks, const RankRows& shared)
      : executor_(options), ranks_(ranks), shared_(shared) {}

  Result<StepTicket> submit(const StepBatch& batch) override {
    batch_ = batch;
    EXPECT_EQ(batch.entering.size(), batch.rows() * kRankRowWidth);
    for (size_t row = 0; row < batch_.ids.size(); ++row) {
      const std::span<const float> entering = batch.entering.subspan(row * kRankRowWidth);
      batch_.ids[row] = static_cast<uint32_t>(entering[0]) | static_cast<uint32_t>(entering[1])
                                                                 << 16;
      EXPECT_EQ(entering[2], static_cast<float>(ranks_ - 1));
    }
    HEARTH_ASSIGN(const StepTicket ticket, executor_.submit(batch_));
    if (shared_.entering != nullptr) entered_[ticket.copy].keep(batch.entering);
    return ticket;
  }
  Result<StepOutcome> wait(const StepTicket& ticket) override {
    HEARTH_ASSIGN(const StepOutcome outcome, executor_.wait(ticket));
    entered_[ticket.copy].check();
    return outcome;
  }
  Status fork_blocks(std::span<const BlockMove> moves) override {
    return executor_.fork_blocks(moves);
  }
  Status swap_out(std::span<const BlockMove> moves) override { return executor_.swap_out(moves); }
  Status swap_in(std::span<const BlockMove> moves) override { return executor_.swap_in(moves); }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    return executor_.set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    return executor_.set_biases(slot, biases);
  }

  StandInExecutor& executor() { return executor_; }

 private:
  StandInExecutor executor_;
  const uint32_t ranks_;
  const RankRows shared_;
  std::array<EnteredRows, kStepsInFlight> entered_;
  StepBatch batch_;
};

enum class RowsTravel { kInMessages, kInSharedMemory };

// Ranks as threads, and the executor that an engine uses.
class StandInRanks {
 public:
  StandInRanks(const StandInOptions& options, uint32_t ranks, uint32_t least_part_rows,
               RowsTravel travel = RowsTravel::kInMessages, bool measure_decoding = false)
      : links_(make_in_process_links(ranks)),
        rows_(shared_rows(options, travel == RowsTravel::kInSharedMemory ? ranks - 1 : 0)),
        last_(options, ranks, rows_of_rank(rows_, ranks - 1)) {
    for (uint32_t rank = 0; rank + 1 < ranks; ++rank)
      stages_.push_back(std::make_unique<StandInStage>(rank == 0, rows_of_rank(rows_, rank)));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads_.emplace_back([this, rank] {
        StepExecutor& stage =
            rank < stages_.size() ? static_cast<StepExecutor&>(*stages_[rank]) : last_;
        static_cast<void>(RankLoop(*links_[rank], stage, rows_of_rank(rows_, rank)).run().ok());
      });
    executor_ = std::make_unique<RankExecutor>(
        *links_[0], RankExecutorOptions{.slots = options.limits.max_sequences,
                                        .block_bytes = 1,
                                        .parts = ranks,
                                        .least_part_rows = least_part_rows,
                                        .measure_decoding = measure_decoding});
  }
  ~StandInRanks() {
    executor_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  RankExecutor& executor() { return *executor_; }
  StandInStage& stage(uint32_t rank) { return *stages_[rank]; }
  StandInExecutor& last() { return last_.executor(); }
  Link& link(uint32_t rank) { return *links_[rank]; }

 private:
  static SharedRowsList shared_rows(const StandInOptions& options, uint32_t count) {
    SharedRowsList list;
    for (uint32_t i = 0; i < count; ++i)
      list.push_back(SharedRows::allocate(options.limits.max_step_tokens * kRankRowWidth * 4));
    return list;
  }

  std::vector<std::unique_ptr<Link>> links_;
  const SharedRowsList rows_;
  std::vector<std::unique_ptr<StandInStage>> stages_;
  StandInLastStage last_;
  std::vector<std::thread> threads_;
  std::unique_ptr<RankExecutor> executor_;
};

}  // namespace hearth::testing
