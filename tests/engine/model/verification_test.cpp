// Steps that verify proposals, through the runner on a small model: several sampled rows per
// sequence, histories that follow commits, masks, mixed logits, NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/unread_token.h"
#include "params/embed.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_sampling.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kPrompt = 9;

class VerificationTest : public GpuTest {
 protected:
  Result<TinyModel> open(StepRunnerOptions options = {}) {
    options.limits = {.rows = 48,
                      .sequences = 3,
                      .logit_rows = 48,
                      .context = 64,
                      .masks = 2,
                      .deterministic = true};
    options.slots = 3;
    options.kv_blocks = 12;
    return TinyModel::open(device(), pipelines(), options);
  }

  // Each slot has four blocks of its own.
  static std::vector<BlockId> blocks(uint32_t slot) {
    return {slot * 4, slot * 4 + 1, slot * 4 + 2, slot * 4 + 3};
  }

  // How the token at `position` of a slot's sequence is sampled.
  static params::SamplingRow row_at(uint32_t slot, uint32_t position,
                                    const SamplingOptions& options) {
    return make_sampling_row(options, {.id_index = slot,
                                       .counter = position - kPrompt,
                                       .bias_offset = slot * StepExecutor::kMaxBiases,
                                       .history_slot = slot})
        .value();
  }

  static std::vector<params::SamplingResult> run(const TinyModel& tiny, const StepBatch& batch) {
    const auto ticket = tiny.runner->submit(batch);
    EXPECT_TRUE(ticket.ok()) << ticket.error().message;
    if (!ticket.ok()) return std::vector<params::SamplingResult>(batch.sampling.size());
    const StepOutcome outcome = tiny.runner->wait(*ticket).value();
    return {outcome.sampled.begin(), outcome.sampled.end()};
  }

  // Row `row` of the last step's logits, as sampling left them.
  static std::vector<float> logits(const TinyModel& tiny, uint32_t rows, uint32_t row) {
    const size_t vocabulary = tiny.model->config().vocabulary;
    const std::vector<float> all = tiny.runner->read_logits(rows).value();
    return {all.begin() + row * vocabulary, all.begin() + (row + 1) * vocabulary};
  }

  // The prompt and `count` tokens after it, one per step.
  static std::vector<params::SamplingResult> decode(const TinyModel& tiny, uint32_t slot,
                                                    uint32_t count,
                                                    const SamplingOptions& options) {
    std::vector<params::SamplingResult> results;
    for (uint32_t i = 0; i < count; ++i) {
      StepBatch batch;
      if (i == 0)
        batch.add_sequence(0, tiny.prompt(kPrompt, 0), blocks(slot));
      else
        batch.add_sequence(kPrompt + i - 1, std::vector<uint32_t>{params::kSampledId | slot},
                           blocks(slot));
      batch.sample(static_cast<uint32_t>(batch.ids.size()) - 1, row_at(slot, kPrompt + i, options));
      results.push_back(run(tiny, batch)[0]);
    }
    return results;
  }
};

void expect_same(const params::SamplingResult& found, const params::SamplingResult& wanted,
                 size_t position) {
  EXPECT_EQ(found.id, wanted.id) << "token " << position;
  EXPECT_EQ(found.logprob, wanted.logprob) << "token " << position;
  EXPECT_EQ(found.kept, wanted.kept) << "token " << position;
}

// What a draft model's steps sample is verified by another model's step before the host has read
// it.
TEST_F(VerificationTest, DraftsOfAnotherRunnerAreVerifiedUnread) {
  constexpr uint32_t kDrafts = 3;
  ASSERT_ASSIGN(const TinyModel tiny, open({.drafted_places = kDrafts}));
  ASSERT_ASSIGN(const TinyModel draft, open({.sampled_ids = &tiny.runner->sampled_ids()}));
  const SamplingOptions options{.temperature = 1.1f, .seed = 3};
  const std::vector<params::SamplingResult> plain = decode(tiny, 0, kDrafts + 2, options);
  ASSERT_EQ(decode(tiny, 1, 1, options)[0].id, plain[0].id);

  constexpr uint32_t kFirstPlace = 3;  // after those of the slots
  StepBatch batch;
  std::vector<uint32_t> first = tiny.prompt(kPrompt, 0);
  first.push_back(plain[0].id);
  std::vector<StepTicket> tickets;
  for (uint32_t i = 0; i < kDrafts; ++i) {
    if (i >= 2) ASSERT_OK(draft.runner->wait(tickets[i - 2]));
    batch.clear();
    if (i == 0)
      batch.add_sequence(0, first, blocks(2));
    else
      batch.add_sequence(kPrompt + i, std::vector{unread_token(kFirstPlace + i - 1)}, blocks(2));
    params::SamplingRow row = row_at(2, kPrompt + 1 + i, options);
    row.id_index = kFirstPlace + i;
    batch.sample(batch.rows() - 1, row);
    ASSERT_ASSIGN(tickets.emplace_back(), draft.runner->submit(batch));
  }
  batch.clear();
  batch.add_sequence(kPrompt,
                     std::vector{plain[0].id, unread_token(kFirstPlace),
                                 unread_token(kFirstPlace + 1), unread_token(kFirstPlace + 2)},
                     blocks(1));
  const uint32_t proposals = batch.add_proposals(std::span(batch.ids).subspan(1));
  for (uint32_t i = 0; i <= kDrafts; ++i) {
    params::SamplingRow row = row_at(1, kPrompt + 1 + i, options);
    verify_only(row, {.proposals = proposals, .followers = i < kDrafts ? 1u << i : 0});
    batch.sample(i, row);
  }
  const std::vector<params::SamplingResult> results = run(tiny, batch);
  for (uint32_t i = 0; i <= kDrafts; ++i) {
    expect_same(results[i], plain[1 + i], 1 + i);
    EXPECT_EQ(results[i].accepted, i < kDrafts ? i + 1 : 0);
  }
}

TEST_F(VerificationTest, IdsWithoutAPlaceAreRefused) {
  ASSERT_ASSIGN(const TinyModel tiny, open({.drafted_places = 2}));
  const auto fault = [&](uint32_t read, uint32_t written) {
    StepBatch batch;
    batch.add_sequence(0, std::vector{unread_token(read)}, blocks(0));
    params::SamplingRow row = row_at(0, kPrompt, {.temperature = 0});
    row.id_index = written;
    batch.sample(0, row);
    const auto ticket = tiny.runner->submit(batch);
    return ticket.ok() ? "" : ticket.error().message;
  };
  EXPECT_EQ(fault(4, 4), "");
  EXPECT_EQ(fault(5, 4), "a step's sampled id has no place on the device");
  EXPECT_EQ(fault(4, 5), "a step's sampled id has no place on the device");
}

// The proposals are the right tokens up to a wrong one; accepted tokens are committed with the next
// step. All other sequences of the steps decode plainly.
TEST_F(VerificationTest, VerifiedTokensEqualThoseOfPlainDecoding) {
  ASSERT_ASSIGN(const TinyModel tiny, open());
  constexpr uint32_t kTokens = 24;
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0, .repetition_penalty = 1.4f, .frequency_penalty = 0.6f},
        {.temperature = 1.5f, .top_k = 60, .presence_penalty = 0.9f, .seed = 11},
        {.temperature = 1.2f, .repetition_penalty = 1.1f, .frequency_penalty = 0.5f, .seed = 5},
        {.temperature = 0}}) {
    ASSERT_OK(tiny.runner->set_history(0, {}));
    const std::vector<params::SamplingResult> plain = decode(tiny, 0, kTokens, options);
    ASSERT_OK(tiny.runner->set_history(1, {}));
    expect_same(decode(tiny, 1, 1, options)[0], plain[0], 0);
    ASSERT_OK(tiny.runner->set_history(2, {}));
    expect_same(decode(tiny, 2, 1, options)[0], plain[0], 0);

    // `done` tokens are known; the last of them is computed again with the proposals after it.
    std::vector<uint32_t> committed;
    for (uint32_t done = 1, step = 0; done < kTokens; ++step) {
      const uint32_t right = std::min(1 + step % 4, kTokens - done - 1);
      std::vector<uint32_t> ids;
      for (uint32_t i = 0; i <= right; ++i) ids.push_back(plain[done - 1 + i].id);
      if (step % 2 == 1) ids.push_back((plain[done + right].id + 1) % 100);  // a wrong one
      StepBatch batch;
      batch.add_sequence(kPrompt + step, std::vector<uint32_t>{params::kSampledId | 2}, blocks(2));
      const uint32_t first = static_cast<uint32_t>(batch.ids.size());
      batch.add_sequence(kPrompt + done - 1, ids, blocks(1));
      batch.sample(0, row_at(2, kPrompt + step + 1, options));
      const uint32_t proposals = batch.add_proposals(std::span(ids).subspan(1));
      for (uint32_t i = 0; i < ids.size(); ++i) {
        params::SamplingRow row = row_at(1, kPrompt + done + i, options);
        const uint32_t followers = i + 1 < ids.size() ? 1u << i : 0;
        verify_only(row, {.proposals = proposals, .path = (1u << i) - 1, .followers = followers});
        batch.sample(first + i, row);
      }
      if (!committed.empty()) batch.commit(1, committed);
      const std::vector<params::SamplingResult> results = run(tiny, batch);
      expect_same(results[0], plain[step + 1], step + 1);
      committed.clear();
      for (uint32_t i = 0; i <= right; ++i, ++done) {
        expect_same(results[1 + i], plain[done], done);
        EXPECT_EQ(results[1 + i].accepted, i < right ? i + 1 : 0);
        committed.push_back(plain[done].id);
      }
    }
  }
}

TEST_F(VerificationTest, AMaskedTokenIsNeverSampled) {
  ASSERT_ASSIGN(const TinyModel tiny, open());
  const uint32_t vocabulary = tiny.model->config().vocabulary;
  StepBatch batch;
  batch.add_sequence(0, tiny.prompt(kPrompt, 0), blocks(0));
  // Row 0 is plain, row 1 has a mask, row 2 has one that allows nothing.
  std::vector<bool> allowed(vocabulary);
  std::vector<uint32_t> bits((vocabulary + 31) / 32);
  for (uint32_t token = 0; token < vocabulary; token += 7) {
    allowed[token] = true;
    bits[token / 32] |= 1u << token % 32;
  }
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0}, {.temperature = 2.0f, .seed = 3}}) {
    batch.logit_rows.clear();
    batch.sampling.clear();
    batch.words.clear();
    for (uint32_t i = 0; i < 3; ++i) {
      params::SamplingRow row = row_at(0, kPrompt, options);
      verify_only(row);
      if (i == 1) use_mask(row, batch.add_mask(bits));
      if (i == 2) use_mask(row, batch.add_mask(std::vector<uint32_t>(bits.size())));
      batch.sample(kPrompt - 1, row);
    }
    const std::vector<params::SamplingResult> results = run(tiny, batch);
    const std::vector<float> plain = logits(tiny, 3, 0);
    const ReferenceSample wanted = reference_sample(plain, {.options = options, .mask = allowed});
    EXPECT_EQ(results[0].id, reference_sample(plain, {.options = options}).id);
    EXPECT_EQ(results[1].id, wanted.id);
    EXPECT_NEAR(results[1].logprob, wanted.logprob, 1e-4);
    EXPECT_EQ(results[1].id % 7, 0u);
    EXPECT_TRUE(sampling_fault(results[2], 9).has_value());
  }
  // There is room for a few masks, and for what other rows and commits might need.
  batch.words.resize(1 << 20);
  EXPECT_FALSE(tiny.runner->submit(batch).ok());
}

// Classifier-free guidance: the negative prompt is a sequence of its own whose row is not sampled.
TEST_F(VerificationTest, GuidedLogitsEqualTheHostsArithmetic) {
  ASSERT_ASSIGN(const TinyModel tiny, open());
  ASSERT_ASSIGN(const TinyModel amateur, open());
  StepRunnerOptions options;
  options.other_logits = &amateur.runner->logits();
  ASSERT_ASSIGN(const TinyModel expert, open(options));
  const auto both = [&](const TinyModel& on) {
    StepBatch batch;
    batch.add_sequence(0, on.prompt(kPrompt, 0), blocks(0));
    batch.add_sequence(0, on.prompt(kPrompt + 2, 1), blocks(1));
    batch.sample(kPrompt - 1, row_at(0, kPrompt, {.temperature = 0}));
    batch.sample(2 * kPrompt + 1, {});
    return batch;
  };
  const StepBatch plain = both(tiny);
  run(tiny, plain);
  const std::vector<float> own = logits(tiny, 2, 0), negative = logits(tiny, 2, 1);
  const auto check = [&](const TinyModel& on, const std::vector<float>& other,
                         const LogitMix& mix) {
    StepBatch batch = both(on);
    ASSERT_OK(mix_logits(batch.sampling[0], mix));
    const params::SamplingResult result = run(on, batch)[0];
    const std::vector<float> wanted = reference_mix(own, other, mix), found = logits(on, 2, 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (std::isinf(wanted[i]))
        ASSERT_EQ(found[i], wanted[i]) << i;
      else
        ASSERT_NEAR(found[i], wanted[i], 1e-5) << i;
    }
    EXPECT_EQ(result.id, std::ranges::max_element(wanted) - wanted.begin());
  };
  check(tiny, negative, {.other_row = 1, .own_weight = 3.0f, .other_weight = -2.0f});

  // Contrastive decoding: the amateur's step is submitted first.
  StepBatch weak;
  weak.add_sequence(0, tiny.prompt(5, 2), blocks(0));
  weak.add_sequence(0, tiny.prompt(kPrompt, 3), blocks(1));
  weak.sample(4, {});
  weak.sample(4 + kPrompt, {});
  run(amateur, weak);
  check(expert, logits(amateur, 2, 1),
        {.other_row = 1,
         .other_model = true,
         .own_weight = 1.5f,
         .other_weight = -0.5f,
         .plausible = 0.1f});
}

TEST_F(VerificationTest, NanLogitsOfOneRowAreReported) {
  ASSERT_ASSIGN(const TinyModel tiny, open());
  const params::TokenBias bias{.token = 77, .bias = std::numeric_limits<float>::quiet_NaN()};
  ASSERT_OK(tiny.runner->set_biases(1, std::span(&bias, 1)));
  StepBatch batch;
  for (uint32_t slot = 0; slot < 2; ++slot) {
    batch.add_sequence(0, tiny.prompt(kPrompt, slot), blocks(slot));
    params::SamplingRow row = row_at(slot, kPrompt, {.temperature = 0});
    row.bias_count = slot;
    batch.sample(static_cast<uint32_t>(batch.ids.size()) - 1, row);
  }
  const std::vector<params::SamplingResult> results = run(tiny, batch);
  EXPECT_EQ(sampling_fault(results[0], kPrompt), std::nullopt);
  EXPECT_EQ(sampling_fault(results[1], kPrompt), "the model produced NaN logits at position 9");
}

TEST_F(VerificationTest, ReferencesToNothingAreRefused) {
  ASSERT_ASSIGN(const TinyModel tiny, open());
  const auto refused = [&](auto change) {
    StepBatch batch;
    batch.add_sequence(0, tiny.prompt(kPrompt, 0), blocks(0));
    batch.sample(kPrompt - 1, row_at(0, kPrompt, {}));
    change(batch);
    const auto ticket = tiny.runner->submit(batch);
    if (ticket.ok()) {
      EXPECT_TRUE(tiny.runner->wait(*ticket).ok());
    }
    return !ticket.ok() && ticket.error().kind == ErrorKind::kInvalid;
  };
  const std::vector<uint32_t> token = {1};
  EXPECT_FALSE(refused([](StepBatch&) {}));
  EXPECT_FALSE(refused([&](StepBatch& batch) { batch.commit(2, token); }));
  EXPECT_TRUE(refused([&](StepBatch& batch) { batch.commit(3, token); }));
  EXPECT_TRUE(refused([&](StepBatch& batch) {
    batch.commit(0, token);
    batch.commits[0].count = 2;
  }));
  EXPECT_TRUE(refused([&](StepBatch& batch) {
    batch.commit(0, token);
    batch.commit(1, token);
  }));
  EXPECT_TRUE(refused([](StepBatch& batch) { use_mask(batch.sampling[0], 0); }));
  for (const bool on_path : {true, false}) {
    const auto names = [&](uint32_t proposal, TokenId id) {
      return refused([&](StepBatch& batch) {
        batch.words.assign(9, id);
        verify_only(batch.sampling[0], {.path = on_path ? 1u << proposal : 0,
                                        .followers = on_path ? 0 : 1u << proposal});
      });
    };
    EXPECT_FALSE(names(8, 1));
    EXPECT_TRUE(names(9, 1));
    EXPECT_TRUE(names(8, unread_token(1000)));
  }
  const auto mix = [](const LogitMix& with) {
    return [with](StepBatch& batch) { ASSERT_OK(mix_logits(batch.sampling[0], with)); };
  };
  EXPECT_TRUE(refused(mix({.other_row = 0})));
  EXPECT_TRUE(refused(mix({.other_row = 1})));
  EXPECT_TRUE(refused(mix({.other_row = 0, .other_model = true})));
}

}  // namespace
}  // namespace hearth::testing
