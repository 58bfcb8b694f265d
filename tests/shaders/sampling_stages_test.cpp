// sample_stages: every sampler that sample_pick lacks, alone and together, and in other orders.
#include "tests/support/sampling.h"

namespace hearth::testing {
namespace {

// Sums and logarithms in f32 move the edges a little further than in the plain filters.
constexpr double kStagesMargin = 1e-5;

SamplerOrder order_of(std::vector<std::string> names) { return parse_sampler_order(names).value(); }

class SamplingStagesTest : public SamplingGpuTest {
 protected:
  static std::vector<SamplingOptions> samplers() {
    return {
        {.typical_p = 0.9f},
        {.typical_p = 0.3f},
        {.typical_p = 0.0f},
        {.temperature = 0.7f, .typical_p = 0.6f, .xtc_probability = 1.0f},
        {.top_logprobs = 5, .top_n_sigma = 1.0f},
        {.temperature = 2.0f, .top_n_sigma = 2.5f},
        {.top_a = 0.2f},
        {.top_a = 1.0f},
        {.epsilon_cutoff = 3e-4f},
        {.epsilon_cutoff = 0.9f},
        {.eta_cutoff = 2e-3f},
        {.temperature = 0.8f, .dynatemp_range = 0.5f},
        {.temperature = 0.5f, .dynatemp_range = 1.5f, .dynatemp_exponent = 2.0f},
        {.min_p = 0.02f, .xtc_probability = 1.0f, .xtc_threshold = 0.05f},
        {.top_logprobs = 20, .xtc_probability = 0.5f, .xtc_threshold = 0.001f},
        {.smoothing_factor = 0.3f},
        {.temperature = 1.5f, .top_k = 40, .smoothing_factor = 1.5f, .smoothing_curve = 2.5f},
        {.temperature = 0.9f, .mirostat = 2, .mirostat_tau = 3.0f},
        {.top_k = 2, .mirostat = 2, .mirostat_tau = 0.0f},
        // Plain samplers in another order.
        {.temperature = 2.0f,
         .top_k = 3000,
         .top_p = 0.7f,
         .order = order_of({"temperature", "top_p", "top_k"})},
        {.temperature = 0.5f,
         .top_p = 0.8f,
         .min_p = 0.1f,
         .order = order_of({"min_p", "temp", "top_p"})},
        {.top_k = 700,
         .top_p = 0.95f,
         .typical_p = 0.95f,
         .xtc_probability = 1.0f,
         .order = order_of({"xtc", "typ_p", "top_p", "top_k"})},
        // All together.
        {.temperature = 0.9f,
         .top_k = 1000,
         .top_p = 0.98f,
         .min_p = 1e-4f,
         .top_logprobs = 3,
         .typical_p = 0.97f,
         .top_n_sigma = 3.0f,
         .top_a = 0.01f,
         .epsilon_cutoff = 1e-5f,
         .eta_cutoff = 1e-5f,
         .xtc_probability = 1.0f,
         .xtc_threshold = 0.2f,
         .dynatemp_range = 0.3f,
         .smoothing_factor = 0.5f,
         .smoothing_curve = 1.5f},
    };
  }

  static std::vector<ReferenceRow> rows_of(const std::vector<SamplingOptions>& options,
                                           uint32_t seed) {
    std::vector<ReferenceRow> rows;
    for (const SamplingOptions& each : options) {
      ReferenceRow row{.options = each, .counter = static_cast<uint32_t>(rows.size()) * 5};
      row.options.seed = (uint64_t{seed} << 33) + rows.size() * 91 + seed;
      row.mirostat_mu = 2.0 * each.mirostat_tau;
      rows.push_back(row);
    }
    return rows;
  }
};

TEST_F(SamplingStagesTest, EverySamplerOnEveryShape) {
  const std::vector<SamplingOptions> options = samplers();
  const auto count = static_cast<uint32_t>(options.size());
  int close = 0, rows = 0;
  for (const uint32_t vocab : {1u, 2u, 7u, 33u, 1000u, 4097u, 20000u}) {
    // Like a model's logits, and so that most of the vocabulary is probable.
    for (const float scale : {2.5f, 0.1f}) {
      const SamplingShape shape{.rows = count, .vocab = vocab, .stages = true};
      const auto logits = random_floats(size_t{count} * vocab, vocab + 3, scale);
      const auto wanted = rows_of(options, vocab);
      close += check(choose_sampling(device().caps(), shape), vocab, logits, wanted, kStagesMargin);
      ++rows;
      if (vocab != 7 && vocab != 4097) continue;
      close += check(gpu_plan(shape), vocab, logits, wanted, kStagesMargin);
      ++rows;
    }
  }
  EXPECT_LT(close, rows * static_cast<int>(count) / 8) << "too little was compared";
}

// typ_p may drop the most probable tokens. What is relative to the largest logit then is so to the
// largest that was kept, also if typ_p's limit falls exactly on a token.
TEST_F(SamplingStagesTest, StagesAfterTypicalCountFromTheFirstTokenKept) {
  const std::vector<SamplingOptions> options = {
      {.min_p = 0.6f, .typical_p = 0.3f},
      {.min_p = 0.3f, .typical_p = 0.5f},
      {.typical_p = 0.4f, .top_a = 0.9f},
      {.top_k = 5, .typical_p = 0.4f, .order = order_of({"typ_p", "top_k"})},
      {.top_p = 0.5f, .typical_p = 0.4f},
      {.typical_p = 0.4f, .smoothing_factor = 0.5f},
  };
  const auto count = static_cast<uint32_t>(options.size());
  int close = 0, without_first = 0;
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    constexpr uint32_t kVocab = 400;
    const SamplingShape shape{.rows = count, .vocab = kVocab, .stages = true};
    const auto logits = random_floats(size_t{count} * kVocab, seed, 1.0f);
    const auto rows = rows_of(options, seed);
    close += check(choose_sampling(device().caps(), shape), kVocab, logits, rows, kStagesMargin);
    for (uint32_t r = 0; r < count; ++r) {
      const auto own = std::span(logits).subspan(size_t{r} * kVocab, kVocab);
      if (reference_sample(own, rows[r]).candidates[0].share == 0) ++without_first;
    }
  }
  EXPECT_LT(close, 6) << "too little was compared";
  EXPECT_GE(without_first, 10) << "the first token was hardly ever dropped";
}

TEST_F(SamplingStagesTest, EqualLogits) {
  const std::vector<SamplingOptions> options = {
      {.typical_p = 0.3f},
      {.top_n_sigma = 0.7f},
      {.top_a = 0.9f},
      {.epsilon_cutoff = 1e-4f},
      {.xtc_probability = 1.0f, .xtc_threshold = 1e-4f},
      {.mirostat = 2, .mirostat_tau = 1.0f},
      // A rank in the middle of equal logits.
      {.temperature = 2.0f, .top_k = 17, .order = order_of({"temperature", "top_k"})},
      {.temperature = 3.0f, .top_p = 0.50123f, .order = order_of({"temperature", "top_p"})},
  };
  for (const uint32_t vocab : {50u, 5003u}) {
    for (const uint32_t values : {1u, 4u}) {
      std::vector<float> logits(options.size() * vocab);
      for (size_t i = 0; i < logits.size(); ++i)
        logits[i] = 1.0f + 0.25f * static_cast<float>((i * 7919 >> 3) % values);
      const SamplingShape shape{
          .rows = static_cast<uint32_t>(options.size()), .vocab = vocab, .stages = true};
      const auto rows = rows_of(options, vocab + values);
      EXPECT_LE(check(choose_sampling(device().caps(), shape), vocab, logits, rows, 1e-6), 1);
      if (vocab < 1000) continue;
      EXPECT_LE(check(gpu_plan(shape, 16384, 64), vocab, logits, rows, 1e-6), 1);
    }
  }
}

TEST_F(SamplingStagesTest, NanAndInfiniteLogits) {
  constexpr uint32_t kVocab = 300;
  const std::vector<SamplingOptions> options = samplers();
  const auto fill = [](float value) { return std::vector<float>(kVocab, value); };
  std::vector<std::vector<float>> cases = {fill(-kInfinity), fill(kNan), fill(kInfinity),
                                           fill(-std::numeric_limits<float>::max())};
  cases.push_back(random_floats(kVocab, 1));
  cases.back()[7] = kNan;
  cases.push_back(random_floats(kVocab, 2));
  cases.back()[17] = cases.back()[200] = kInfinity;
  cases.push_back(fill(-kInfinity));
  cases.back()[299] = -5;
  cases.push_back(random_floats(kVocab, 3));
  for (size_t i = 0; i < kVocab; i += 2) cases.back()[i] = -kInfinity;
  int close = 0;
  for (const auto& one : cases) {
    std::vector<float> logits;
    for (size_t r = 0; r < options.size(); ++r) logits.insert(logits.end(), one.begin(), one.end());
    const SamplingShape shape{
        .rows = static_cast<uint32_t>(options.size()), .vocab = kVocab, .stages = true};
    close += check(choose_sampling(device().caps(), shape), kVocab, logits, rows_of(options, 5),
                   kStagesMargin);
  }
  EXPECT_LT(close, 12) << "too little was compared";
}

// Also among plain rows, greedy rows, masked rows, verification rows and rows with penalties.
TEST_F(SamplingStagesTest, ARowGivesTheSameTokenInEveryBatchAndEveryPlan) {
  constexpr uint32_t kVocab = 3001;
  std::vector<SamplingOptions> options = samplers();
  options.push_back({.temperature = 0.8f, .top_k = 40});
  options.push_back({.temperature = 0});
  options.push_back({.temperature = 0.6f, .top_p = 0.9f, .top_logprobs = 2});
  auto rows = rows_of(options, 8);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r % 3 == 1) {
      rows[r].history = {{.token = 5, .count = 2}, {.token = 2000, .count = 0}};
      rows[r].options.repetition_penalty = 1.2f;
      rows[r].options.presence_penalty = 0.4f;
    }
    if (r % 4 == 2) rows[r].path = {5, 9, 5};
    if (r % 5 == 3) {
      rows[r].mask.assign(kVocab, true);
      for (size_t i = 0; i < kVocab; i += 3) rows[r].mask[i] = false;
    }
    if (r % 4 == 0)
      for (uint32_t i = 0; i < 20; ++i)
        rows[r].dry.push_back({.token = i * 150, .bias = 0.5f * static_cast<float>(i)});
  }
  const auto count = static_cast<uint32_t>(rows.size());
  const auto logits = random_floats(size_t{count} * kVocab, 12, 1.5f);
  SamplingShape shape{.rows = count, .vocab = kVocab, .extras = true, .stages = true};
  const SamplingPlan own_plan = choose_sampling(device().caps(), shape);
  EXPECT_LT(check(own_plan, kVocab, logits, rows, kStagesMargin), 4);
  const Sampled all = sample(own_plan, kVocab, logits, rows);
  const auto same = [&](const Sampled& other, size_t other_row, size_t r) {
    EXPECT_EQ(other.results[other_row].id, all.results[r].id) << "row " << r;
    EXPECT_EQ(other.results[other_row].kept, all.results[r].kept) << "row " << r;
    EXPECT_EQ(other.results[other_row].logprob, all.results[r].logprob) << "row " << r;
  };
  for (const auto& [shared_bytes, lanes] : {std::pair{32768u, 1024u}, {16384u, 64u}}) {
    const Sampled other = sample(gpu_plan(shape, shared_bytes, lanes), kVocab, logits, rows);
    for (uint32_t r = 0; r < count; ++r) same(other, r, r);
  }
  shape.rows = 1;
  for (uint32_t r = 0; r < count; r += 2) {
    const std::vector<float> own(logits.begin() + size_t{r} * kVocab,
                                 logits.begin() + size_t{r + 1} * kVocab);
    same(sample(choose_sampling(device().caps(), shape), kVocab, own, {rows[r]}), 0, r);
  }
}

// Steps without such rows run the kernels they ran before.
TEST_F(SamplingStagesTest, OnlyStepsWithStagesRunTheirKernel) {
  const SamplingShape plain{.rows = 4, .vocab = 1000};
  SamplingShape with = plain;
  with.stages = true;
  const SamplingPlan a = choose_sampling(device().caps(), plain);
  const SamplingPlan b = choose_sampling(device().caps(), with);
  EXPECT_FALSE(a.stages);
  ASSERT_TRUE(b.stages);
  EXPECT_EQ(a.pick->pipeline.constants, b.pick->pipeline.constants);
  // The scan measures for them, too.
  KernelConstants measuring = a.scan.pipeline.constants;
  measuring.set("kStages", 1u);
  EXPECT_EQ(b.scan.pipeline.constants, measuring);
}

// top_k's tokens are found by the largest logit of each segment, and listed unless they are too
// many. Rows whose segments mislead: all large logits in one segment, or several in each, equal
// ones, few candidates, and a list that is exactly full.
TEST_F(SamplingStagesTest, TopKOfSegmentsThatMislead) {
  constexpr uint32_t kVocab = 9001;
  std::vector<SamplingOptions> options;
  for (const uint32_t k : {2u, 33u, 280u, 511u, 512u, 513u, 1024u, 1025u})
    for (const float sigmas : {0.0f, 2.0f})
      options.push_back(
          {.temperature = 1.5f, .top_k = k, .typical_p = 0.95f, .top_n_sigma = sigmas});
  const auto count = static_cast<uint32_t>(options.size());
  const SamplingShape shape{.rows = count, .vocab = kVocab, .stages = true};
  const SamplingPlan plan = choose_sampling(device().caps(), shape);
  std::vector<std::vector<float>> cases(4, random_floats(kVocab, 31, 1.0f));
  // The quads of a segment are as far apart as the scan has lanes.
  const uint32_t lanes = plan.stages->pipeline.constants["kScanLanes"];
  for (uint32_t j = 0; j < params::kSegmentQuads; ++j)
    for (uint32_t c = 0; c < 4; ++c)
      cases[0][j * lanes * 4 + c] = 5.0f + 0.01f * static_cast<float>(j * 4 + c);
  for (float& logit : cases[1]) logit = std::round(logit * 4) / 4;
  for (uint32_t i = 0; i < kVocab; ++i)
    if (i % 31 != 0) cases[2][i] = -kInfinity;
  for (uint32_t i = 0; i < kVocab; ++i) cases[3][i] = 3.0f - 1e-3f * static_cast<float>(i);
  int close = 0;
  for (const auto& one : cases) {
    std::vector<float> logits;
    for (uint32_t r = 0; r < count; ++r) logits.insert(logits.end(), one.begin(), one.end());
    const auto rows = rows_of(options, static_cast<uint32_t>(&one - cases.data()));
    close += check(plan, kVocab, logits, rows, kStagesMargin);
    close += check(gpu_plan(shape), kVocab, logits, rows, kStagesMargin);
  }
  EXPECT_LT(close, static_cast<int>(count)) << "too little was compared";
}

TEST_F(SamplingStagesTest, ChosenTokensAreCountedInTheHistory) {
  ReferenceRow row{.options = {.presence_penalty = 0.1f, .top_n_sigma = 0.1f},
                   .history = {{.token = 4, .count = 0}}};
  std::vector<float> logits(50, 0.0f);
  logits[30] = 9;
  const SamplingShape shape{.rows = 1, .vocab = 50, .stages = true};
  const Sampled sampled = sample(choose_sampling(device().caps(), shape), 50, logits, {row}, 2);
  EXPECT_EQ(sampled.ids[0], 30u);
  ASSERT_EQ(sampled.history_lengths[0], 2u);
  EXPECT_EQ(sampled.history[1].token, 30u);
  EXPECT_EQ(sampled.history[1].count, 2u);
}

TEST_F(SamplingStagesTest, MirostatFollowsTheSurpriseOfEachToken) {
  constexpr uint32_t kVocab = 500, kRows = 16;
  const SamplingShape shape{.rows = kRows, .vocab = kVocab, .stages = true};
  const auto logits = random_floats(size_t{kRows} * kVocab, 5, 2.0f);
  std::vector<ReferenceRow> rows;
  for (uint32_t r = 0; r < kRows; ++r) {
    rows.push_back({.options = {.temperature = 0.9f,
                                .seed = r,
                                .mirostat = 2,
                                .mirostat_tau = 2.0f + 0.2f * static_cast<float>(r),
                                .mirostat_eta = 0.3f}});
    rows.back().mirostat_mu = 2 * rows.back().options.mirostat_tau;
  }
  for (uint32_t step = 0; step < 6; ++step) {
    const Sampled sampled = sample(choose_sampling(device().caps(), shape), kVocab, logits, rows);
    for (uint32_t r = 0; r < kRows; ++r) {
      const auto own = std::span(logits).subspan(size_t{r} * kVocab, kVocab);
      const ReferenceSample reference = reference_sample(own, rows[r]);
      if (reference.draw_margin > kDrawMargin && reference.edge_margin > kStagesMargin) {
        EXPECT_EQ(sampled.results[r].id, reference.id);
        const SamplingOptions& options = rows[r].options;
        const double mu = rows[r].mirostat_mu -
                          options.mirostat_eta * (reference.surprise - options.mirostat_tau);
        EXPECT_NEAR(sampled.mirostat[r], mu, 1e-4);
      }
      EXPECT_EQ(sampled.mirostat[r], sampled.mirostat_slots[r]);
      rows[r].mirostat_mu = sampled.mirostat[r];
      ++rows[r].counter;
    }
  }
}

// Draws of one row with many counters against the reference's probabilities.
TEST_F(SamplingStagesTest, DrawsFollowTheDistribution) {
  constexpr uint32_t kVocab = 40, kDraws = 4000;
  const auto logits = random_floats(kVocab, 9, 1.2f);
  std::vector<float> copies;
  for (uint32_t i = 0; i < kDraws; ++i) copies.insert(copies.end(), logits.begin(), logits.end());
  const SamplingShape shape{.rows = kDraws, .vocab = kVocab, .stages = true};
  const SamplingPlan plan = choose_sampling(device().caps(), shape);
  const std::vector<SamplingOptions> options = {
      {.typical_p = 0.8f},
      {.top_n_sigma = 1.2f},
      {.top_a = 0.3f},
      {.epsilon_cutoff = 0.01f},
      {.eta_cutoff = 0.02f},
      {.temperature = 1.0f, .dynatemp_range = 0.8f},
      {.xtc_probability = 0.4f, .xtc_threshold = 0.04f},
      {.smoothing_factor = 0.4f, .smoothing_curve = 1.5f},
      {.mirostat = 2, .mirostat_tau = 2.0f},
      {.temperature = 1.4f, .top_p = 0.8f, .order = order_of({"temperature", "top_p"})},
  };
  for (const SamplingOptions& each : options) {
    std::vector<ReferenceRow> rows(kDraws, {.options = each});
    for (uint32_t i = 0; i < kDraws; ++i) {
      rows[i].options.seed = 77;
      rows[i].counter = i;
      rows[i].mirostat_mu = 2.0 * each.mirostat_tau;
    }
    const Sampled sampled = sample(plan, kVocab, copies, rows);
    std::vector<uint32_t> draws;
    for (const params::SamplingResult& result : sampled.results) draws.push_back(result.id);
    // With XTC, the distribution is a mixture of those with and without it.
    ReferenceRow certain = rows[0], never = rows[0];
    if (each.xtc_probability > 0) certain.options.xtc_probability = 1.0f;
    never.options.xtc_probability = 0.0f;
    ReferenceSample mixture = reference_sample(logits, certain);
    const ReferenceSample without = reference_sample(logits, never);
    const double part = each.xtc_probability > 0 ? each.xtc_probability : 1.0;
    for (size_t i = 0; i < mixture.candidates.size(); ++i)
      mixture.candidates[i].share =
          part * mixture.candidates[i].share + (1 - part) * without.candidates[i].share;
    EXPECT_GT(draws_p(draws, mixture), 1e-3) << &each - options.data();
  }
}

}  // namespace
}  // namespace hearth::testing
