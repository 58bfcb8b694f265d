// A request whose logits are NaN, or that has no token left to sample, ends with an error that says
// so; the others in its batch continue.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

// The stand-in executor; from its `counter`-th token on, the request with `seed` gets a result that
// is none.
class FaultyLogitsExecutor : public StepExecutor {
 public:
  FaultyLogitsExecutor(const StandInOptions& options, uint32_t seed, uint32_t counter,
                       const params::SamplingResult& fault)
      : stand_in_(options), seed_(seed), counter_(counter), fault_(fault) {}

  Result<StepTicket> submit(const StepBatch& batch) override {
    HEARTH_ASSIGN(const StepTicket ticket, stand_in_.submit(batch));
    faulty_[ticket.copy].clear();
    for (const params::SamplingRow& row : batch.sampling)
      faulty_[ticket.copy].push_back(row.seed_low == seed_ && row.counter >= counter_);
    return ticket;
  }
  Result<StepOutcome> wait(const StepTicket& ticket) override {
    HEARTH_ASSIGN(StepOutcome outcome, stand_in_.wait(ticket));
    results_.assign(outcome.sampled.begin(), outcome.sampled.end());
    for (size_t i = 0; i < results_.size(); ++i)
      if (faulty_[ticket.copy][i]) results_[i] = fault_;
    outcome.sampled = results_;
    return outcome;
  }
  Status fork_blocks(std::span<const BlockMove> moves) override {
    return stand_in_.fork_blocks(moves);
  }
  Status swap_out(std::span<const BlockMove> moves) override { return stand_in_.swap_out(moves); }
  Status swap_in(std::span<const BlockMove> moves) override { return stand_in_.swap_in(moves); }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    return stand_in_.set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    return stand_in_.set_biases(slot, biases);
  }

 private:
  StandInExecutor stand_in_;
  uint32_t seed_, counter_;
  params::SamplingResult fault_;
  std::array<std::vector<bool>, kStepsInFlight> faulty_;
  std::vector<params::SamplingResult> results_;
};

TEST(EngineNanLogits, EndTheirRequestAlone) {
  constexpr uint32_t kBad = 2, kPrompt = 10, kGood = 3;
  const float none = -std::numeric_limits<float>::infinity();
  const std::pair<params::SamplingResult, const char*> cases[] = {
      {{.id = 0, .logprob = none, .kept = params::kNanLogits},
       "the model produced NaN logits at position 13"},
      {{.id = 0, .logprob = none, .kept = 0},
       "no token can be sampled at position 13: every logit is -infinity"}};
  for (const auto& [fault, message] : cases) {
    const StandInOptions options{
        .limits = {.max_sequences = 4, .max_step_tokens = 64, .context = 128, .pool_blocks = 64}};
    FaultyLogitsExecutor executor(options, kBad, kGood, fault);
    Engine engine(
        executor, nullptr,
        {.limits = options.limits, .vocabulary = options.vocabulary, .check_integrity = true});
    std::vector<GenerationRequest> requests;
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 4; ++i) {
      requests.push_back({.prompt = made_up_prompt(kPrompt, i), .max_tokens = 12});
      requests.back().sampling.seed = i;
      auto stream = engine.submit(requests.back());
      ASSERT_TRUE(stream.ok());
      streams.push_back(std::move(*stream));
    }
    for (uint32_t i = 0; i < 4; ++i) {
      std::vector<TokenId> right = generate_alone(options, requests[i]);
      if (i == kBad) right.resize(kGood);
      EXPECT_EQ(read_ids(streams[i]), right) << i;
      EXPECT_EQ(streams[i].end().reason, i == kBad ? FinishReason::kError : FinishReason::kLength);
      EXPECT_EQ(streams[i].end().message, i == kBad ? message : "");
    }
  }
}

}  // namespace
}  // namespace hearth::testing
