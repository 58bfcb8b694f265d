// What sampling rows may have beyond the options of a request: paths, masks, logits to be mixed
// with, and tokens committed to histories.
#include <random>

#include "tests/support/sampling.h"

namespace hearth::testing {
namespace {

class SamplingExtrasTest : public SamplingGpuTest {
 protected:
  // For this device, and for GPUs.
  std::vector<SamplingPlan> plans(SamplingShape shape) {
    shape.extras = true;
    return {choose_sampling(device().caps(), shape), gpu_plan(shape)};
  }

  static std::vector<bool> random_mask(uint32_t vocab, double share, uint32_t seed) {
    std::mt19937 generator(seed);
    std::bernoulli_distribution allowed(share);
    std::vector<bool> mask(vocab);
    for (uint32_t i = 0; i < vocab; ++i) mask[i] = allowed(generator);
    return mask;
  }

  static std::vector<SamplingOptions> every_path_of_the_kernels() {
    return {{.temperature = 0, .top_logprobs = 20},
            {.top_k = 40, .top_p = 0.95f, .top_logprobs = 5},
            {.temperature = 0.8f},
            {.top_p = 0.9f, .top_logprobs = 3},
            {.top_k = 3000},
            {.min_p = 0.05f}};
  }
};

TEST_F(SamplingExtrasTest, NoTokenOutsideAMaskIsSampled) {
  // Ragged at the end of the row, of a word and of a chunk; the last row's mask allows nothing, the
  // one before it only the least likely token.
  for (const uint32_t vocab : {1u, 31u, 33u, 1000u, 4097u, 9001u}) {
    const auto options = every_path_of_the_kernels();
    std::vector<ReferenceRow> rows;
    for (uint32_t r = 0; r < options.size() + 3; ++r) {
      ReferenceRow row{.options = options[r % options.size()], .counter = r};
      row.options.seed = vocab + r;
      if (r % 3 != 2) row.mask = random_mask(vocab, r % 2 == 0 ? 0.5 : 0.02, vocab + r);
      rows.push_back(row);
    }
    auto logits = random_floats(rows.size() * vocab, vocab, 2.5f);
    rows.back().mask.assign(vocab, false);
    rows[rows.size() - 2].mask.assign(vocab, false);
    rows[rows.size() - 2].mask[vocab / 2] = true;
    logits[(rows.size() - 2) * vocab + vocab / 2] = -100.0f;
    // The mask is applied last: it also forbids a token with a large bias.
    rows[0].mask[0] = false;
    rows[0].biases = {{.token = 0, .bias = 100.0f}};
    int close = 0;
    for (const SamplingPlan& plan : plans({static_cast<uint32_t>(rows.size()), vocab}))
      close += check(plan, vocab, logits, rows);
    EXPECT_LE(close, 1);
  }
}

TEST_F(SamplingExtrasTest, GreedyRowsHaveMasksAndPathsToo) {
  constexpr uint32_t kVocab = 5003;
  std::vector<ReferenceRow> rows(4, {.options = {.temperature = 0}});
  rows[1].mask = random_mask(kVocab, 0.01, 1);
  rows[2].mask.assign(kVocab, false);
  rows[3].options.presence_penalty = 9.0f;
  rows[3].path = {4000, 17};
  auto logits = random_floats(rows.size() * kVocab, 1, 1.0f);
  logits[3 * kVocab + 4000] = 9.5f;
  logits[3 * kVocab + 17] = 9.4f;
  logits[3 * kVocab + 18] = 9.3f;
  for (const SamplingPlan& plan : plans({4, kVocab, true}))
    EXPECT_EQ(check(plan, kVocab, logits, rows), 0);
}

TEST_F(SamplingExtrasTest, DrawsFollowTheMaskedDistribution) {
  constexpr uint32_t kVocab = 120, kDraws = 10240;
  std::vector<float> one(kVocab);
  for (uint32_t i = 0; i < kVocab; ++i) one[i * 37 % kVocab] = -0.04f * static_cast<float>(i);
  std::vector<float> logits;
  for (uint32_t i = 0; i < kDraws; ++i) logits.insert(logits.end(), one.begin(), one.end());
  const SamplingShape shape{.rows = kDraws, .vocab = kVocab, .extras = true};
  for (const SamplingOptions& options :
       {SamplingOptions{.seed = 1}, {.temperature = 0.7f, .top_k = 20, .seed = 2}}) {
    std::vector<ReferenceRow> rows;
    for (uint32_t i = 0; i < kDraws; ++i)
      rows.push_back({.options = options, .counter = i, .mask = random_mask(kVocab, 0.4, 5)});
    const std::vector<uint32_t> draws =
        sample(choose_sampling(device().caps(), shape), kVocab, logits, rows).ids;
    EXPECT_GT(draws_p(draws, reference_sample(one, rows[0])), 1e-3);
    ReferenceRow other = rows[0];
    other.mask = random_mask(kVocab, 0.4, 6);
    EXPECT_LT(draws_p(draws, reference_sample(one, other)), 1e-6);
  }
}

// Tokens of a path that are in the history, that are not, and that are on it twice.
TEST_F(SamplingExtrasTest, PenaltiesCountThePathAfterTheHistory) {
  constexpr uint32_t kVocab = 9001;
  std::vector<ReferenceRow> rows;
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0, .repetition_penalty = 1.3f, .top_logprobs = 20},
        {.top_k = 40, .presence_penalty = 0.8f, .top_logprobs = 20},
        {.top_p = 0.9f, .frequency_penalty = 0.7f, .top_logprobs = 20},
        {.temperature = 0.9f,
        .repetition_penalty = 0.8f,
        .presence_penalty = -0.5f,
        .frequency_penalty = 0.25f,
        .top_logprobs = 20}}) {
    for (const uint32_t entries : {0u, 20u, kHistoryCapacity - 3, kHistoryCapacity}) {
      const auto seed = static_cast<uint32_t>(rows.size());
      ReferenceRow row{.options = options, .counter = seed};
      for (uint32_t i = 0; i < entries; ++i) row.history.push_back({i * 140 + seed, i % 3});
      row.path = {5000, 140 + seed, 8999, 5000, 0, 280 + seed, kVocab - 1, 140 + seed, 6000, 7000};
      rows.push_back(row);
    }
  }
  rows[1].path.resize(1);
  rows[2].path.assign(params::kMaxProposals - 8, 4242);
  std::vector<float> logits = random_floats(rows.size() * kVocab, 3, 1.5f);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (const auto& entry : rows[r].history) logits[r * kVocab + entry.token] += 5;
    for (const uint32_t token : rows[r].path) logits[r * kVocab + token] += 7;
  }
  for (const SamplingPlan& plan : plans({static_cast<uint32_t>(rows.size()), kVocab}))
    EXPECT_EQ(check(plan, kVocab, logits, rows), 0);
}

// The token that a row samples is among its followers, or not, or twice; some followers are left on
// the device by another step, and some proposals follow another row. Runs every kernel that
// samples.
TEST_F(SamplingExtrasTest, RowsAcceptTheFollowerThatTheySample) {
  constexpr uint32_t kVocab = 4100;
  std::mt19937 generator(5);
  for (const bool greedy : {false, true}) {
    std::vector<SamplingOptions> options = every_path_of_the_kernels();
    options.push_back({.typical_p = 0.8f});
    options.push_back({.temperature = 1.2f, .top_a = 0.02f, .xtc_probability = 0.5f});
    std::vector<ReferenceRow> rows;
    for (uint32_t r = 0; r < 64; ++r) {
      ReferenceRow row{.options = options[r % options.size()], .counter = r};
      if (greedy) row.options = {.temperature = 0};
      row.options.seed = 90 + r;
      if (r % 5 == 1) row.path = {17, 4000, 17};
      rows.push_back(row);
    }
    auto logits = random_floats(rows.size() * kVocab, 4, 2.5f);
    rows[3].followers = {0};  // what a row without candidates would sample
    std::fill_n(logits.begin() + 3 * kVocab, kVocab, -kInfinity);
    uint32_t with_the_token = 0;
    for (uint32_t r = 4; r < rows.size(); ++r) {
      const uint32_t count = r % 8;
      for (uint32_t i = 0; i < count; ++i) rows[r].followers.push_back(generator() % kVocab);
      if (r % 3 == 0 || count == 0) continue;
      const auto row_logits = std::span(logits).subspan(size_t{r} * kVocab, kVocab);
      const uint32_t token = reference_sample(row_logits, rows[r]).id;
      rows[r].followers[generator() % count] = rows[r].followers[generator() % count] = token;
      ++with_the_token;
    }
    // As many proposals as there can be, three in four of them followers, and the right one last.
    rows[2].path.clear();
    const auto third = std::span(logits).subspan(size_t{2} * kVocab, kVocab);
    const uint32_t sampled_there = reference_sample(third, rows[2]).id;
    rows[2].followers.assign(params::kMaxProposals / 4 * 3, (sampled_there + 1) % kVocab);
    rows[2].followers.back() = sampled_there;
    const SamplingShape shape{.rows = static_cast<uint32_t>(rows.size()),
                              .vocab = kVocab,
                              .greedy = greedy,
                              .stages = !greedy};
    for (const SamplingPlan& plan : plans(shape)) {
      EXPECT_LE(check(plan, kVocab, logits, rows), 2);
      const Sampled sampled = sample(plan, kVocab, logits, rows);
      EXPECT_EQ(sampled.results[2].accepted, params::kMaxProposals);
      EXPECT_EQ(sampled.results[3].accepted, 0u);
      const auto accepting = static_cast<uint32_t>(std::ranges::count_if(
          sampled.results,
          [](const params::SamplingResult& result) { return result.accepted != 0; }));
      EXPECT_GE(accepting + 2, with_the_token);
    }
  }
}

// A row with a NaN is reported whatever else it asks for, and its neighbours are sampled.
TEST_F(SamplingExtrasTest, ANanLogitIsReported) {
  constexpr uint32_t kVocab = 5000;
  for (const bool greedy : {false, true}) {
    std::vector<ReferenceRow> rows;
    for (uint32_t r = 0; r < 8; ++r)
      rows.push_back({.options = every_path_of_the_kernels()[r % 6], .counter = r});
    if (greedy)
      for (ReferenceRow& row : rows) row.options = {.temperature = 0};
    auto logits = random_floats(rows.size() * kVocab, 9, 2.5f);
    for (uint32_t r = 0; r < rows.size(); r += 2) logits[r * kVocab + (r * 1111) % kVocab] = kNan;
    rows[2].mask = random_mask(kVocab, 0.5, 1);
    rows[2].mask[2222] = false;  // the NaN itself
    for (const SamplingPlan& plan : plans({static_cast<uint32_t>(rows.size()), kVocab, greedy})) {
      EXPECT_EQ(check(plan, kVocab, logits, rows), 0);
      const Sampled sampled = sample(plan, kVocab, logits, rows);
      for (uint32_t r = 0; r < rows.size(); ++r) {
        EXPECT_EQ(sampled.results[r].kept == params::kNanLogits, r % 2 == 0) << r;
        EXPECT_EQ(sampling_fault(sampled.results[r], 41),
                  r % 2 == 0
                      ? std::optional<std::string>("the model produced NaN logits at position 41")
                      : std::nullopt);
      }
    }
  }
}

// Rows 0 to 2 are mixed: with row 3, with row 4, and with another model's row 1. Row 3 is left as
// it is, like row 5, which has nothing to do with it.
TEST_F(SamplingExtrasTest, LogitsAreMixedWithAnotherRows) {
  for (const uint32_t vocab : {1u, 7u, 1000u, 40001u}) {
    constexpr uint32_t kRows = 6;
    auto logits = random_floats(size_t{kRows} * vocab, vocab, 2.0f);
    auto others = random_floats(size_t{2} * vocab, vocab + 1, 2.0f);
    logits[3 * vocab] = logits[vocab + vocab / 2] = -kInfinity;
    others[2 * vocab - 1] = -kInfinity;
    const std::vector<LogitMix> mixes = {
        {.other_row = 3, .own_weight = 1.5f, .other_weight = -0.5f},
        {.other_row = 4, .own_weight = 2.0f, .other_weight = -1.0f, .plausible = 0.3f},
        {.other_row = 1,
         .other_model = true,
         .own_weight = 1.0f,
         .other_weight = -1.0f,
         .plausible = 0.1f}};
    std::vector<params::SamplingRow> rows(kRows);
    rows[5] = make_sampling_row({}, {}).value();
    std::vector<float> expected = logits;
    for (uint32_t r = 0; r < mixes.size(); ++r) {
      rows[r] = make_sampling_row({}, {}).value();
      ASSERT_OK(mix_logits(rows[r], mixes[r]));
      const auto row = [&](const std::vector<float>& of, uint32_t index) {
        return std::span(of).subspan(size_t{index} * vocab, vocab);
      };
      const auto mixed =
          reference_mix(row(logits, r),
                        row(mixes[r].other_model ? others : logits, mixes[r].other_row), mixes[r]);
      std::ranges::copy(mixed, expected.begin() + size_t{r} * vocab);
    }
    const SamplingShape shape{.rows = kRows, .vocab = vocab};
    DeviceCaps gpu = device().caps();
    gpu.type = DeviceType::kDiscrete;
    for (const KernelPlan& plan :
         {choose_mix_logits(device().caps(), shape), choose_mix_logits(gpu, shape)}) {
      const Buffer own = filled(logits), other = filled(others), row_buffer = filled(rows);
      run([&](CommandRecorder& recorder) {
        return record_mix_logits(recorder, pipelines(), plan,
                                 {.logits = own.all(),
                                  .other_logits = other.all(),
                                  .rows = row_buffer.all(),
                                  .biases = row_buffer.all(),
                                  .words = row_buffer.all(),
                                  .shape = shape});
      });
      const std::vector<float> found = read<float>(own);
      for (size_t i = 0; i < found.size(); ++i) {
        if (std::isinf(expected[i]))
          ASSERT_EQ(found[i], expected[i]) << "row " << i / vocab << ", token " << i % vocab;
        else
          ASSERT_NEAR(found[i], expected[i], 2e-6) << "row " << i / vocab;
      }
    }
  }
}

TEST_F(SamplingExtrasTest, NanIsMixedIntoNan) {
  constexpr uint32_t kVocab = 300;
  auto logits = random_floats(2 * kVocab, 1);
  logits[5] = kNan;
  logits[kVocab + 7] = kNan;
  std::vector<params::SamplingRow> rows = {make_sampling_row({}, {}).value(), {}};
  ASSERT_OK(mix_logits(rows[0], {.other_row = 1, .other_weight = 1, .plausible = 0.5f}));
  const Buffer own = filled(logits), row_buffer = filled(rows);
  const SamplingShape shape{.rows = 2, .vocab = kVocab};
  run([&](CommandRecorder& recorder) {
    return record_mix_logits(recorder, pipelines(), choose_mix_logits(device().caps(), shape),
                             {.logits = own.all(),
                              .other_logits = own.all(),
                              .rows = row_buffer.all(),
                              .biases = row_buffer.all(),
                              .words = row_buffer.all(),
                              .shape = shape});
  });
  const std::vector<float> found = read<float>(own);
  for (uint32_t i = 0; i < kVocab; ++i) EXPECT_EQ(std::isnan(found[i]), i == 5 || i == 7) << i;
}

// Token v has the logit -v / 100: row 0 may not sample the first ten, row 1 not the first four.
TEST_F(SamplingExtrasTest, OnlyTokensThatMayBeSampledSayWhatIsPlausible) {
  constexpr uint32_t kVocab = 1001, kMaskWords = (kVocab + 31) / 32;
  std::vector<float> logits(2 * kVocab), others(kVocab, 1.0f);
  for (uint32_t v = 0; v < kVocab; ++v) logits[v] = logits[kVocab + v] = -0.01f * float(v);
  std::vector<uint32_t> words(3 + kMaskWords, ~0u);
  words[3] &= ~0x3ffu;
  const std::vector<params::TokenBias> biases = {{.token = 500, .bias = 3},
                                                 {.token = 3, .bias = -kInfinity},
                                                 {.token = 0, .bias = -kInfinity},
                                                 {.token = 1, .bias = -kInfinity},
                                                 {.token = 2, .bias = -kInfinity}};
  std::vector<params::SamplingRow> rows(2, make_sampling_row({}, {}).value());
  for (params::SamplingRow& row : rows)
    ASSERT_OK(mix_logits(row, {.other_model = true,
                               .own_weight = 1,
                               .other_weight = -1,
                               .plausible = std::exp(-0.0505f)}));
  rows[0].flags |= params::kSamplingMask;
  rows[0].mask = 3;
  rows[1].bias_offset = 1;
  rows[1].bias_count = 4;
  const Buffer own = filled(logits), other = filled(others), row_buffer = filled(rows),
               word_buffer = filled(words), bias_buffer = filled(biases);
  const SamplingShape shape{.rows = 2, .vocab = kVocab};
  run([&](CommandRecorder& recorder) {
    return record_mix_logits(recorder, pipelines(), choose_mix_logits(device().caps(), shape),
                             {.logits = own.all(),
                              .other_logits = other.all(),
                              .rows = row_buffer.all(),
                              .biases = bias_buffer.all(),
                              .words = word_buffer.all(),
                              .shape = shape});
  });
  const std::vector<float> found = read<float>(own);
  // The best allowed token and the five after it are plausible; sampling drops what a mask leaves
  // out.
  for (uint32_t v = 0; v < kVocab; ++v) {
    EXPECT_EQ(std::isinf(found[v]), v > 15) << v;
    EXPECT_EQ(std::isinf(found[kVocab + v]), v < 4 || v > 9) << v;
  }
}

TEST_F(SamplingExtrasTest, CommitsAreCountedInOrder) {
  constexpr uint32_t kSlots = 5;
  std::vector<std::vector<params::TokenCount>> histories(kSlots);
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    for (uint32_t i = 0; i < slot * 16; ++i) histories[slot].push_back({i * 3 + slot, i % 2});
  histories[3].resize(kHistoryCapacity - 1);
  histories[4].resize(kHistoryCapacity);
  const std::vector<std::pair<uint32_t, std::vector<uint32_t>>> wanted = {
      {3, {9000, 3, 9001, 9000, 6}}, {0, {5, 5, 6, 5}}, {4, {4, 8000, 7}}, {1, {}}};
  std::vector<params::TokenCount> entries(kSlots * kHistoryCapacity);
  std::vector<uint32_t> lengths, words = {1, 2, 3};
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    std::ranges::copy(histories[slot], entries.begin() + slot * kHistoryCapacity);
    lengths.push_back(static_cast<uint32_t>(histories[slot].size()));
  }
  std::vector<params::HistoryCommit> commits;
  for (const auto& [slot, tokens] : wanted) {
    commits.push_back(
        {slot, static_cast<uint32_t>(words.size()), static_cast<uint32_t>(tokens.size())});
    words.insert(words.end(), tokens.begin(), tokens.end());
    reference_commit(histories[slot], tokens, kHistoryCapacity);
  }
  commits.push_back({});
  DeviceCaps gpu = device().caps();
  gpu.type = DeviceType::kDiscrete;
  for (const DeviceCaps& caps : {device().caps(), gpu}) {
    const Buffer commit_buffer = filled(commits), word_buffer = filled(words);
    const Buffer length_buffer = filled(lengths), history = filled(entries);
    run([&](CommandRecorder& recorder) {
      return record_history_commits(
          recorder, pipelines(), choose_history_commit(caps, static_cast<uint32_t>(commits.size())),
          {.commits = commit_buffer.all(),
           .words = word_buffer.all(),
           .history_lengths = length_buffer.all(),
           .history = history.all(),
           .history_capacity = kHistoryCapacity});
    });
    const auto found = read<params::TokenCount>(history);
    const auto found_lengths = read<uint32_t>(length_buffer);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(found_lengths[slot], histories[slot].size()) << slot;
      for (uint32_t i = 0; i < histories[slot].size(); ++i) {
        EXPECT_EQ(found[slot * kHistoryCapacity + i].token, histories[slot][i].token) << slot;
        EXPECT_EQ(found[slot * kHistoryCapacity + i].count, histories[slot][i].count) << slot;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::testing
