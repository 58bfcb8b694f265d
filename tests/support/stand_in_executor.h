// Runs steps without a GPU, for tests of the engine's threads and of the inputs it gives the
// device. The blocks of its KV memory hold token ids. A step writes its tokens to their slots and
// then reads the whole sequence through its block table. What it samples follows from what it read
// (stand_in_sampler.h), so a wrong block table, a missing copy, a stale slot or another request's
// id changes the answer, and every request's answer is known in advance.
//
// Used by the engine thread only, except for `faults`, `delay` and the counters.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/step_executor.h"
#include "engine/scheduling/scheduler.h"
#include "engine/scheduling/unread_token.h"
#include "runtime/faults.h"
#include "tests/support/reference_judging.h"
#include "tests/support/stand_in_sampler.h"

namespace hearth::testing {

class StandInExecutor final : public StepExecutor {
 public:
  // With `model`, which outlives this, the steps of both sample into the same places.
  explicit StandInExecutor(const StandInOptions& options, StandInExecutor* model = nullptr)
      : options_(options),
        sampler_(options),
        pool_(size_t{options.limits.pool_blocks} * kTokensPerBlock, kNothing),
        host_(size_t{options.limits.swap_blocks} * kTokensPerBlock, kNothing),
        own_sampled_(options.limits.max_sequences * size_t{1 + kMaxProposed}, kNothing),
        sampled_(model != nullptr ? model->own_sampled_ : own_sampled_),
        history_(options.limits.max_sequences),
        biases_(options.limits.max_sequences),
        hidden_(options.limits.max_sequences) {
    for (auto& results : results_) results.reserve(options.limits.max_sequences);
  }

  // The n-th call from now fails; with kDeviceLost all later calls fail, too.
  struct {
    FaultSwitch submit, wait, move, slot, hidden;
    std::atomic<ErrorKind> kind{ErrorKind::kDeviceLost};
  } faults;
  std::atomic<std::chrono::microseconds> delay{std::chrono::microseconds(0)};  // per step
  std::atomic<uint64_t> steps{0}, moves{0}, fork_calls{0}, swaps{0}, rows{0}, bias_writes{0};
  std::atomic<uint64_t> padding_rows{0},
      seeing_padding_rows{0};  // the latter are those that see keys

  std::atomic<uint64_t> unread_drafts{0};  // rows of drafts that the host had not read
  // Called with 's' by submit() and with 'w' by wait(), on the thread that calls them.
  std::function<void(char)> on_call = [](char) {};
  std::function<void(const StepBatch&)> on_submit = [](const StepBatch&) {};

  Result<StepTicket> submit(const StepBatch& batch) override {
    on_call('s');
    on_submit(batch);
    if (faults.submit.should_fail()) break_down();
    if (broken_) return take_error("the stand-in could not submit");
    check(batch);
    for (const params::StepSequence& sequence : members(batch))
      for (uint32_t i = 0; i < sequence.rows; ++i) {
        const uint32_t given = batch.ids[sequence.first_row + i];
        place(batch, sequence, sequence.first_position + i) = id_of(given);
      }
    unread_drafts += static_cast<uint64_t>(std::ranges::count_if(batch.ids, [&](TokenId id) {
      return is_unread(id) && place_of_unread(id) >= options_.limits.max_sequences;
    }));
    look_at_padding(batch);
    for (const params::HistoryCommit& commit : batch.commits)
      for (uint32_t i = 0; i < commit.count; ++i)
        count_token(history_.at(commit.slot), batch.words.at(commit.first + i));
    std::vector<params::SamplingResult>& results = results_[copy_];
    results.clear();
    // Padding rows come last; nothing is sampled from them.
    size_t logits = 0;
    while (logits < batch.logit_rows.size() && batch.logit_rows[logits] < batch.ids.size())
      ++logits;
    const auto active = [&](size_t i) {
      return (batch.sampling[i].flags & params::kSamplingActive) != 0;
    };
    for (size_t i = 0; i < logits; ++i) {
      if (!active(i))
        results.push_back({});
      else if ((batch.sampling[i].flags & params::kSamplingGiven) != 0)
        results.push_back(score(batch, batch.logit_rows[i], batch.sampling[i]));
      else
        results.push_back({.id = sample(batch, batch.logit_rows[i], batch.sampling[i])});
      results.back().accepted = accepted(batch, batch.sampling[i], results.back().id);
    }
    fill_top(batch, logits);
    for (size_t i = logits; i < batch.logit_rows.size(); ++i) {
      EXPECT_LT(batch.logit_rows[i], batch.rows());
      results.push_back({});
    }
    // The inputs of this step have been read by now.
    for (size_t i = 0; i < logits; ++i)
      if (active(i) && batch.sampling[i].id_index != params::kNoSlot)
        sampled_.at(batch.sampling[i].id_index) = results[i].id;
    pool(batch);
    keep_and_compare(batch);
    StepTicket ticket{.copy = copy_, .logit_rows = static_cast<uint32_t>(results.size())};
    copy_ = (copy_ + 1) % kStepsInFlight;
    ++under_way_;
    ++steps;
    rows += batch.rows();
    return ticket;
  }

  Result<StepOutcome> wait(const StepTicket& ticket) override {
    on_call('w');
    if (faults.wait.should_fail()) break_down();
    if (broken_) return take_error("the stand-in could not wait");
    EXPECT_GT(under_way_, 0u);
    --under_way_;
    if (const auto pause = delay.load(); pause.count() > 0) std::this_thread::sleep_for(pause);
    return StepOutcome{.sampled = std::span<const params::SamplingResult>(results_[ticket.copy]),
                       .top = std::span<const params::TokenLogprob>(top_[ticket.copy]),
                       .pooled = pooled_[ticket.copy],
                       .mirostat = {},
                       .similarity = similarity_[ticket.copy]};
  }

  Status fork_blocks(std::span<const BlockMove> moved) override {
    EXPECT_EQ(independent_moves(moved), moved.size()) << "the GPU makes them in any order";
    ++fork_calls;
    return move(moved, pool_, pool_);
  }
  Status swap_out(std::span<const BlockMove> moved) override {
    swaps += moved.size();
    return move(moved, pool_, host_);
  }
  Status swap_in(std::span<const BlockMove> moved) override { return move(moved, host_, pool_); }

  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    if (faults.slot.should_fail()) break_down();
    if (broken_) return take_error("the stand-in could not set a slot");
    history_.at(slot).assign(tokens.begin(), tokens.end());
    return {};
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    if (faults.slot.should_fail()) break_down();
    if (broken_) return take_error("the stand-in could not set a slot");
    biases_.at(slot).assign(biases.begin(), biases.end());
    ++bias_writes;
    return {};
  }
  Status reserve_hidden(uint32_t slot, uint32_t tokens) override {
    if (tokens > 0 && faults.hidden.should_fail())
      return Error{ErrorKind::kOutOfMemory, "the stand-in has no room"};
    if (tokens == 0) hidden_.at(slot).clear();
    if (tokens > hidden_.at(slot).size()) hidden_.at(slot).resize(tokens, kNoDirection);
    return {};
  }

 private:
  // Never kept: its similarity to anything is far too large.
  static constexpr std::array<double, kStandInWidth> kNoDirection = {1e9, 1e9, 1e9, 1e9, 1e9, 1e9};

  static constexpr TokenId kNothing = 0x7fffffff;  // never written

  void break_down() { broken_ = true; }
  Error take_error(const char* what) {
    const ErrorKind kind = faults.kind;
    if (kind != ErrorKind::kDeviceLost) broken_ = false;
    return {kind, what};
  }

  void check(const StepBatch& batch) const {
    const SchedulerLimits& limits = options_.limits;
    EXPECT_LT(under_way_, kStepsInFlight);
    EXPECT_LE(batch.rows(), limits.max_step_tokens);
    EXPECT_LE(batch.members(), limits.max_sequences + size_t{limits.max_proposed});
    EXPECT_LE(batch.padding_sequences, limits.max_sequences);
    EXPECT_LE(batch.logit_rows.size(), limits.max_sequences + size_t{limits.max_proposed});
    EXPECT_EQ(batch.logit_rows.size(), batch.sampling.size());
  }

  // The hidden state of a row is that of its token, stand_in_hidden().
  void pool(const StepBatch& batch) {
    std::vector<float>& sums = pooled_[copy_];
    sums.assign(batch.pools.size() * kStandInWidth, 0);
    for (size_t i = 0; i < batch.pools.size(); ++i)
      for (uint32_t row = 0; row < batch.pools[i].rows; ++row)
        for (uint32_t column = 0; column < kStandInWidth; ++column)
          sums[i * kStandInWidth + column] +=
              stand_in_hidden(batch.ids.at(batch.pools[i].first_row + row), column);
  }

  // A row's direction follows from all tokens it sees.
  std::array<double, kStandInWidth> direction(const StepBatch& batch, uint32_t row) {
    for (const params::StepSequence& owner : members(batch))
      if (row >= owner.first_row && row < owner.first_row + owner.rows)
        return stand_in_direction(read_path(batch, owner, row));
    ADD_FAILURE() << "row " << row << " belongs to no sequence";
    return {};
  }
  void keep_and_compare(const StepBatch& batch) {
    for (const KeptRows& kept : batch.kept) {
      auto& hidden = hidden_.at(kept.slot);
      if (kept.copied_from != 0) hidden.at(kept.copied_to) = hidden.at(kept.copied_from);
      for (uint32_t i = 0; i < kept.rows; ++i)
        hidden.at(kept.first_position + i) = direction(batch, kept.first_row + i);
    }
    std::vector<float>& similarity = similarity_[copy_];
    similarity.clear();
    if (!batch.compared.empty())
      similarity.resize(batch.logit_rows.size() * params::kComparisonParts, -2);
    for (const ComparedRow& row : batch.compared) {
      const auto own = direction(batch, batch.logit_rows.at(row.logit_row));
      for (uint32_t i = 0; i < row.tokens; ++i) {
        float& part = similarity.at(size_t{row.logit_row} * params::kComparisonParts +
                                    i % params::kComparisonParts);
        part = std::max(part,
                        static_cast<float>(stand_in_similarity(own, hidden_.at(row.slot).at(i))));
      }
    }
  }

  static std::span<const params::StepSequence> members(const StepBatch& batch) {
    return std::span(batch.sequences).first(batch.members());
  }

  // Padding rows see keys that have been computed, and share their row with no sequence.
  void look_at_padding(const StepBatch& batch) {
    padding_rows += batch.padding_rows;
    uint32_t row = static_cast<uint32_t>(batch.ids.size());
    for (const params::StepSequence& padding :
         std::span(batch.sequences).subspan(batch.members())) {
      EXPECT_GE(padding.first_row, row);
      row = padding.first_row + padding.rows;
      seeing_padding_rows += padding.rows;
      EXPECT_GT(padding.first_position, 0u);
      for (uint32_t i = 0; i + 1 < padding.first_position + padding.rows; ++i)
        EXPECT_NE(place(batch, padding, i), kNothing);
    }
    EXPECT_LE(row, batch.rows());
  }

  TokenId id_of(TokenId given) const {
    if (!is_unread(given)) return given;
    const TokenId id = sampled_.at(place_of_unread(given));
    EXPECT_NE(id, kNothing) << "nothing was sampled at place " << place_of_unread(given);
    return id;
  }
  // Penalties count the ids of a path as they are.
  static TokenId known_id(TokenId id) {
    EXPECT_FALSE(is_unread(id));
    return id;
  }

  TokenId& place(const StepBatch& batch, const params::StepSequence& sequence, uint32_t position) {
    const uint32_t block = batch.block_tables.at(sequence.block_table + position / kTokensPerBlock);
    return pool_.at(size_t{block} * kTokensPerBlock + position % kTokensPerBlock);
  }

  TokenId sample(const StepBatch& batch, uint32_t row, const params::SamplingRow& sampling) {
    const params::StepSequence* owner = nullptr;
    for (const params::StepSequence& sequence : members(batch))
      if (row >= sequence.first_row && row < sequence.first_row + sequence.rows) owner = &sequence;
    if (owner == nullptr) {
      ADD_FAILURE() << "row " << row << " belongs to no sequence";
      return kNothing;
    }
    uint64_t read = read_path(batch, *owner, row);
    if (is_mixed(sampling) && (sampling.other_row & params::kOtherModel) == 0)
      read = StandInSampler::mix(read, read_other(batch, sampling.other_row));
    const uint32_t slot = sampling.bias_offset / kMaxBiases;
    EXPECT_EQ(sampling.bias_offset % kMaxBiases, 0u);
    if (sampling.id_index < options_.limits.max_sequences) {
      EXPECT_EQ(sampling.id_index, slot);
    }
    const std::span<const params::TokenBias> biases(biases_.at(slot));
    if (sampling.history_slot == params::kNoHistory)
      return masked(batch, sampling,
                    sampler_.sample(read, sampling, {}, biases.first(sampling.bias_count)));
    std::vector<params::TokenCount>& history = history_.at(sampling.history_slot);
    std::vector<params::TokenCount> with_path;  // plain decoding does not allocate
    if (sampling.path != 0) with_path = history;
    for (uint32_t i = 0; i < params::kMaxProposals; ++i)
      if ((sampling.path >> i & 1) != 0)
        count_token(with_path, known_id(batch.words.at(sampling.proposals + i)));
    const std::span<const params::TokenCount> counted(sampling.path != 0 ? with_path : history);
    const TokenId id =
        masked(batch, sampling,
               sampler_.sample(read, sampling, counted, biases.first(sampling.bias_count)));
    if ((sampling.flags & params::kSamplingAppend) != 0) count_token(history, id);
    return id;
  }

  // What the row accepts, like SamplingResult::accepted.
  uint32_t accepted(const StepBatch& batch, const params::SamplingRow& sampling, TokenId id) const {
    std::vector<TokenId> proposed;
    for (int i = 0; i < std::bit_width(sampling.followers); ++i)
      proposed.push_back(id_of(batch.words.at(sampling.proposals + static_cast<uint32_t>(i))));
    return reference_accepted(sampling.followers, proposed, id);
  }

  // Rows that want the most probable tokens get them. Steps without such rows have no list.
  void fill_top(const StepBatch& batch, size_t logits) {
    std::vector<params::TokenLogprob>& top = top_[copy_];
    top.clear();
    for (size_t i = 0; i < logits; ++i) {
      const params::SamplingRow& row = batch.sampling[i];
      if (row.top_logprobs == 0) continue;
      // What is beyond the requested tokens is left over from earlier steps: it looks probable
      // here.
      top.resize(batch.logit_rows.size() * params::kMaxTopLogprobs);
      for (const params::StepSequence& sequence : members(batch)) {
        const uint32_t logit_row = batch.logit_rows[i];
        if (logit_row < sequence.first_row || logit_row >= sequence.first_row + sequence.rows)
          continue;
        const bool has_mask = (row.flags & params::kSamplingMask) != 0;
        std::vector<params::TokenLogprob> entries =
            sampler_.top(read_path(batch, sequence, logit_row),
                         has_mask ? options_.vocabulary : row.top_logprobs);
        if (has_mask) {
          std::erase_if(entries, [&](const params::TokenLogprob& entry) {
            return (batch.words.at(row.mask + entry.id / 32) >> entry.id % 32 & 1) == 0;
          });
          entries.resize(row.top_logprobs, {.id = params::kNoToken, .logprob = -INFINITY});
        }
        std::copy(entries.begin(), entries.end(),
                  top.begin() + static_cast<std::ptrdiff_t>(i * params::kMaxTopLogprobs));
      }
    }
  }

  // Reports a given token: the log-probability is a function of it and of the tokens before it.
  params::SamplingResult score(const StepBatch& batch, uint32_t row,
                               const params::SamplingRow& sampling) {
    EXPECT_EQ(sampling.id_index, params::kNoSlot);
    for (const params::StepSequence& owner : members(batch))
      if (row >= owner.first_row && row < owner.first_row + owner.rows)
        return {.id = sampling.given,
                .logprob = stand_in_logprob(read_path(batch, owner, row), sampling.given),
                .kept = 1};
    ADD_FAILURE() << "row " << row << " belongs to no sequence";
    return {};
  }

  // What a logit row sees that is not sampled itself, and that another is mixed with.
  uint64_t read_other(const StepBatch& batch, uint32_t logit_row) {
    EXPECT_EQ(batch.sampling.at(logit_row).flags & params::kSamplingActive, 0u);
    const uint32_t row = batch.logit_rows.at(logit_row);
    for (const params::StepSequence& owner : members(batch))
      if (row >= owner.first_row && row < owner.first_row + owner.rows)
        return read_path(batch, owner, row);
    ADD_FAILURE() << "row " << row << " belongs to no sequence";
    return 0;
  }

  // A hash of the tokens that a row sees: those before its tree, if it is in one, and its path.
  uint64_t read_path(const StepBatch& batch, const params::StepSequence& owner, uint32_t row) {
    const uint32_t end = owner.first_position + row - owner.first_row + 1;
    const uint32_t path = row < batch.ancestors.size() ? batch.ancestors[row] : 0;
    const uint32_t tree = end - static_cast<uint32_t>(std::bit_width(path));
    uint64_t read = 0;
    for (uint32_t i = 0; i < end; ++i)
      if (i < tree || (path >> (i - tree) & 1) != 0)
        read = StandInSampler::mix(read, place(batch, owner, i));
    return read;
  }

  // The first token from `id` on that the row's mask allows.
  TokenId masked(const StepBatch& batch, const params::SamplingRow& sampling, TokenId id) const {
    if ((sampling.flags & params::kSamplingMask) == 0) return id;
    for (uint32_t i = 0; i < options_.vocabulary; ++i) {
      const TokenId token = (id + i) % options_.vocabulary;
      if ((batch.words.at(sampling.mask + token / 32) >> token % 32 & 1) != 0) return token;
    }
    ADD_FAILURE() << "a mask allows no token";
    return id;
  }

  Status move(std::span<const BlockMove> moved, const std::vector<TokenId>& from,
              std::vector<TokenId>& to) {
    if (faults.move.should_fail()) break_down();
    if (broken_) return take_error("the stand-in could not move blocks");
    moves += moved.size();
    for (const BlockMove& one : moved)
      for (uint32_t i = 0; i < kTokensPerBlock; ++i)
        to.at(size_t{one.to} * kTokensPerBlock + i) =
            from.at(size_t{one.from} * kTokensPerBlock + i);
    return {};
  }

  const StandInOptions options_;
  const StandInSampler sampler_;
  std::vector<TokenId> pool_, host_;  // [blocks, kTokensPerBlock]
  std::vector<TokenId> own_sampled_;  // by place: one per slot, then those of drafts
  std::vector<TokenId>& sampled_;
  std::vector<std::vector<params::TokenCount>> history_;
  std::vector<std::vector<params::TokenBias>> biases_;
  std::array<std::vector<params::SamplingResult>, kStepsInFlight> results_;
  std::array<std::vector<float>, kStepsInFlight> pooled_, similarity_;
  std::vector<std::vector<std::array<double, kStandInWidth>>> hidden_;  // by slot and position
  std::array<std::vector<params::TokenLogprob>, kStepsInFlight> top_;
  size_t copy_ = 0, under_way_ = 0;
  bool broken_ = false;
};

}  // namespace hearth::testing
