#include "tests/support/sampling.h"

namespace hearth::testing {
namespace {

class SamplingTest : public SamplingGpuTest {
 protected:
  static std::vector<SamplingOptions> combinations() {
    return {
        {.temperature = 0},
        {.temperature = 0, .top_logprobs = 20},
        {},  // the plain distribution
        {.temperature = 0.7f, .top_logprobs = 3},
        {.temperature = 1.5f},
        {.top_k = 1, .top_logprobs = 20},
        {.top_k = 2},
        {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .top_logprobs = 5},
        {.top_k = 40, .top_p = 0.95f},
        {.temperature = 1.3f, .top_k = 500, .top_p = 0.9f},
        {.top_k = 700, .top_p = 0.99f, .top_logprobs = 20},
        {.temperature = 2.0f, .top_k = 5000},
        {.top_k = 1u << 30, .top_p = 0.5f},
        {.top_p = 0.95f},
        {.temperature = 0.6f, .top_p = 0.999f, .top_logprobs = 1},
        {.top_p = 0.0f},
        {.min_p = 0.02f},
        {.temperature = 3.0f, .top_p = 0.9f, .min_p = 0.001f},
        {.min_p = 1.0f},
        {.temperature = 100.0f},
        {.temperature = 0.01f},
    };
  }

  // One row per combination, each with its own logits and seed.
  static std::vector<ReferenceRow> rows_of(const std::vector<SamplingOptions>& options,
                                           uint32_t seed) {
    std::vector<ReferenceRow> rows;
    for (const SamplingOptions& each : options) {
      ReferenceRow row{.options = each, .counter = static_cast<uint32_t>(rows.size()) * 3};
      row.options.seed = (uint64_t{seed} << 35) + rows.size() * 77 + seed;
      rows.push_back(row);
    }
    return rows;
  }
};

TEST_F(SamplingTest, EveryCombinationOfOptionsOnEveryShape) {
  const std::vector<SamplingOptions> options = combinations();
  int close = 0, rows = 0;
  for (const uint32_t vocab : {1u, 2u, 7u, 33u, 1000u, 4097u, 32000u}) {
    // Spread like a model's logits, then so that most of the vocabulary is probable.
    for (const float scale : {2.5f, 0.1f}) {
      const SamplingShape shape{.rows = static_cast<uint32_t>(options.size()), .vocab = vocab};
      const auto logits = random_floats(options.size() * vocab, vocab, scale);
      const auto wanted = rows_of(options, vocab + 1);
      close += check(choose_sampling(device().caps(), shape), vocab, logits, wanted);
      close += check(gpu_plan(shape), vocab, logits, wanted);
      if (vocab == 1000) close += check(gpu_plan(shape, 16384, 128), vocab, logits, wanted);
      rows += 2 * static_cast<int>(options.size());
    }
  }
  EXPECT_LT(close, rows / 20) << "too little was compared";
}

// If all rows are greedy, one kernel is enough, with more lanes per row for few rows: with biases
// and penalties, without candidates, with equal logits in several chunks, in each chunk; run twice,
// to check what the first run leaves behind.
TEST_F(SamplingTest, OneKernelSamplesGreedyRows) {
  for (const auto& [count, vocab] : {std::pair{20u, 1u},
                                     {12u, 7u},
                                     {20u, 1000u},
                                     {12u, 4097u},
                                     {20u, 4097u},
                                     {12u, 40001u},
                                     {20u, 40001u}}) {
    auto logits = random_floats(size_t{count} * vocab, vocab, 2.5f);
    std::vector<ReferenceRow> rows(count);
    for (uint32_t r = 0; r < count; ++r) {
      rows[r].options.temperature = r % 2 == 0 ? 0.0f : 1.0f;
      rows[r].options.top_k = r % 2;
      logits[size_t{r} * vocab + uint64_t{vocab - 1} * r / (count - 1)] = 20.0f;
    }
    logits[size_t{4} * vocab] = logits[size_t{5} * vocab + vocab / 2] = 20.0f;
    std::fill_n(logits.begin() + size_t{6} * vocab, vocab, -kInfinity);
    std::fill_n(logits.begin() + size_t{7} * vocab, vocab, kNan);
    rows[8].biases = {{.token = vocab - 1, .bias = 100.0f}};
    rows[9].biases = {{.token = vocab / 2, .bias = -kInfinity}};
    rows[10].history = {{.token = vocab / 2, .count = 1}};
    rows[10].options.repetition_penalty = 10.0f;
    const SamplingShape shape{.rows = count, .vocab = vocab, .greedy = true};
    EXPECT_EQ(gpu_plan(shape).scan.pipeline.constants["kSegmentLanes"] > 1, count < 16);
    for (const SamplingPlan& plan :
         {choose_sampling(device().caps(), shape), gpu_plan(shape), gpu_plan(shape, 16384, 64)}) {
      ASSERT_FALSE(plan.pick);
      EXPECT_EQ(check(plan, vocab, logits, rows), 0);
    }
    // Biases and penalties are applied in place, so rows 8 to 10 cannot be compared in the second
    // run.
    rows[8] = rows[9] = rows[10] = rows[0];
    const Sampled twice = sample(gpu_plan(shape), vocab, logits, rows, 2);
    const Sampled picked = sample(gpu_plan({.rows = count, .vocab = vocab}), vocab, logits, rows);
    for (uint32_t r = 0; r < count; ++r) {
      EXPECT_EQ(twice.results[r].id, picked.results[r].id) << "row " << r;
      EXPECT_EQ(twice.results[r].logprob, picked.results[r].logprob) << "row " << r;
    }
  }
}

TEST_F(SamplingTest, LargeVocabularies) {
  const std::vector<SamplingOptions> options = {
      {.temperature = 0, .top_logprobs = 20},
      {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f},
      {.top_p = 0.9f},
  };
  for (const uint32_t vocab : {128256u, 151936u, 262144u, 262208u}) {
    const SamplingShape shape{.rows = 3, .vocab = vocab};
    const auto logits = random_floats(options.size() * vocab, vocab, 3.0f);
    const auto rows = rows_of(options, vocab);
    EXPECT_EQ(check(choose_sampling(device().caps(), shape), vocab, logits, rows), 0);
    EXPECT_EQ(check(gpu_plan(shape), vocab, logits, rows), 0);
  }
}

TEST_F(SamplingTest, TheLowestIdWinsAmongEqualLogits) {
  // All equal, and few distinct values: bins with too many tokens for the list.
  const std::vector<SamplingOptions> options = {{.temperature = 0, .top_logprobs = 20},
                                                {.top_k = 3, .top_logprobs = 7},
                                                {.top_k = 400},
                                                {.top_k = 3000},
                                                {.top_p = 0.3003f},
                                                {.temperature = 0.5f},
                                                {.top_k = 2000, .top_p = 0.50123f},
                                                {.temperature = 2.0f, .min_p = 0.5f}};
  // Sums of few distinct weights are hardly rounded at all.
  constexpr double kSmallMargin = 3e-7;
  for (const uint32_t vocab : {50u, 5003u, 40001u}) {
    for (const uint32_t values : {1u, 4u}) {
      std::vector<float> logits(options.size() * vocab);
      for (size_t i = 0; i < logits.size(); ++i)
        logits[i] = 1.0f + 0.25f * static_cast<float>((i * 7919 >> 3) % values);
      const SamplingShape shape{.rows = static_cast<uint32_t>(options.size()), .vocab = vocab};
      const auto rows = rows_of(options, vocab + values);
      EXPECT_LE(check(choose_sampling(device().caps(), shape), vocab, logits, rows, kSmallMargin),
                1);
      EXPECT_LE(check(gpu_plan(shape), vocab, logits, rows, kSmallMargin), 1);
    }
  }
}

TEST_F(SamplingTest, NanAndInfiniteLogits) {
  constexpr uint32_t kVocab = 300;
  const std::vector<SamplingOptions> options = {{.temperature = 0, .top_logprobs = 4},
                                                {.top_k = 5, .top_logprobs = 20},
                                                {.top_p = 0.9012f, .top_logprobs = 1},
                                                {.temperature = 1e6f, .min_p = 0.1f}};
  const auto fill = [](float value) { return std::vector<float>(kVocab, value); };
  std::vector<std::vector<float>> cases = {fill(-kInfinity), fill(kNan), fill(kInfinity),
                                           fill(-std::numeric_limits<float>::max())};
  cases.push_back(random_floats(kVocab, 1));
  for (size_t i = 0; i < kVocab; i += 3) cases.back()[i] = kNan;
  cases.push_back(random_floats(kVocab, 2));
  cases.back()[17] = cases.back()[200] = kInfinity;
  cases.push_back(fill(-kInfinity));
  cases.back()[299] = -5;
  cases.push_back(fill(-1));
  cases.back()[9] = -0.0f;
  cases.back()[11] = 0.0f;  // equal to the previous one
  for (const auto& one : cases) {
    std::vector<float> logits;
    for (size_t r = 0; r < options.size(); ++r) logits.insert(logits.end(), one.begin(), one.end());
    const SamplingShape shape{.rows = static_cast<uint32_t>(options.size()), .vocab = kVocab};
    const auto rows = rows_of(options, 5);
    EXPECT_EQ(check(choose_sampling(device().caps(), shape), kVocab, logits, rows), 0);
    EXPECT_EQ(check(gpu_plan(shape), kVocab, logits, rows), 0);
  }
}

TEST_F(SamplingTest, BiasesAndPenalties) {
  constexpr uint32_t kVocab = 9001;
  std::vector<ReferenceRow> rows;
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0, .repetition_penalty = 1.3f, .top_logprobs = 20},
        {.top_k = 40, .presence_penalty = 0.8f, .top_logprobs = 20},
        {.top_p = 0.9f, .frequency_penalty = 0.7f, .top_logprobs = 20},
        {.temperature = 0.9f,
        .top_k = 100,
        .repetition_penalty = 0.8f,
        .presence_penalty = -0.5f,
        .frequency_penalty = 0.25f,
        .top_logprobs = 20},
        {.temperature = 0, .top_logprobs = 20}}) {
    const auto seed = static_cast<uint32_t>(rows.size());
    ReferenceRow row{.options = options, .counter = seed};
    // Some tokens are in both lists, some in one; the first and the last token are in both.
    for (uint32_t i = 0; i < 30; ++i) row.history.push_back({i * 300 + seed, i % 4});
    row.history.push_back({kVocab - 1, 2});
    for (uint32_t i = 0; i < 20; ++i)
      row.biases.push_back({i * 450 + seed, i % 5 == 0 ? -kInfinity : static_cast<float>(i) - 9});
    row.biases.push_back({kVocab - 1, 3});
    rows.push_back(row);
  }
  rows.back().history.clear();
  const SamplingShape shape{.rows = static_cast<uint32_t>(rows.size()), .vocab = kVocab};
  std::vector<float> logits = random_floats(rows.size() * kVocab, 3, 1.5f);
  // The listed tokens matter only if they are near the top.
  for (size_t r = 0; r < rows.size(); ++r)
    for (const auto& entry : rows[r].history) logits[r * kVocab + entry.token] += 9;
  EXPECT_EQ(check(choose_sampling(device().caps(), shape), kVocab, logits, rows), 0);
  EXPECT_EQ(check(gpu_plan(shape), kVocab, logits, rows), 0);
}

TEST_F(SamplingTest, ChosenTokensAreCountedInTheHistory) {
  // Greedy, and each choice lowers its logit by 1 per count: tokens take turns according to their
  // logits.
  constexpr uint32_t kVocab = 5;
  const std::vector<float> logits = {1.0f, 5.0f, 4.5f, -9.0f, 3.2f};
  const ReferenceRow row{.options = {.temperature = 0, .frequency_penalty = 1.0f},
                         .history = {{.token = 4, .count = 0}}};
  for (const bool gpu : {false, true}) {
    const SamplingShape shape{.rows = 1, .vocab = kVocab};
    // Logits are adjusted in place, so each run subtracts all counts so far: 5 > 4.5 > 4 > ...
    const Sampled sampled = sample(gpu ? gpu_plan(shape) : choose_sampling(device().caps(), shape),
                                   kVocab, logits, {row}, 4);
    // 1 (then 4.0), 2 (then 3.5; 1 at 3.0), ... as worked out by hand:
    // run 1: 5.0 4.5 3.2 -> token 1; run 2: 4.0 4.5 3.2 -> 2; run 3: 3.0 3.5 3.2 -> 2;
    // run 4: 2.0 1.5 3.2 -> 4.
    ASSERT_EQ(sampled.history_lengths[0], 3u);
    EXPECT_EQ(sampled.history[0].token, 4u);
    EXPECT_EQ(sampled.history[0].count, 1u);
    EXPECT_EQ(sampled.history[1].token, 1u);
    EXPECT_EQ(sampled.history[1].count, 1u);
    EXPECT_EQ(sampled.history[2].token, 2u);
    EXPECT_EQ(sampled.history[2].count, 2u);
    EXPECT_EQ(sampled.ids[0], 4u);
  }
}

TEST_F(SamplingTest, FullHistoriesAreLeftUnchanged) {
  ReferenceRow row{.options = {.temperature = 0, .presence_penalty = 0.1f}};
  for (uint32_t i = 0; i < kHistoryCapacity; ++i) row.history.push_back({i, 1});
  std::vector<float> logits(200, 0.0f);
  logits[150] = 9;
  const SamplingShape shape{.rows = 1, .vocab = 200};
  const Sampled sampled = sample(choose_sampling(device().caps(), shape), 200, logits, {row});
  EXPECT_EQ(sampled.ids[0], 150u);
  EXPECT_EQ(sampled.history_lengths[0], kHistoryCapacity);
  EXPECT_EQ(sampled.history.back().token, kHistoryCapacity - 1);
}

TEST_F(SamplingTest, ARowGivesTheSameTokenInEveryBatchAndEveryPlan) {
  constexpr uint32_t kVocab = 6007, kRows = 64;
  const auto options = combinations();
  const auto logits = random_floats(size_t{kRows} * kVocab, 11, 1.0f);
  std::vector<ReferenceRow> rows;
  for (uint32_t r = 0; r < kRows; ++r) {
    rows.push_back({.options = options[r % options.size()], .counter = r});
    rows.back().options.seed = 1000 + r;
    rows.back().options.top_logprobs = r % 3;
  }
  const SamplingShape shape{.rows = kRows, .vocab = kVocab};
  const Sampled all = sample(choose_sampling(device().caps(), shape), kVocab, logits, rows);
  const auto same = [&](const Sampled& other, size_t other_row, size_t r) {
    EXPECT_EQ(other.results[other_row].id, all.results[r].id) << "row " << r;
    EXPECT_EQ(other.results[other_row].kept, all.results[r].kept) << "row " << r;
    EXPECT_EQ(other.results[other_row].logprob, all.results[r].logprob) << "row " << r;
  };
  for (uint32_t r = 0; r < kRows; ++r) {
    const std::vector<float> own(logits.begin() + size_t{r} * kVocab,
                                 logits.begin() + size_t{r + 1} * kVocab);
    const Sampled alone =
        sample(choose_sampling(device().caps(), {1, kVocab}), kVocab, own, {rows[r]});
    same(alone, 0, r);
  }
  for (const auto& [shared_bytes, lanes] :
       {std::pair{32768u, 1024u}, {32768u, 64u}, {16384u, 128u}}) {
    const Sampled other = sample(gpu_plan(shape, shared_bytes, lanes), kVocab, logits, rows);
    for (uint32_t r = 0; r < kRows; ++r) same(other, r, r);
  }
}

// One token is far ahead, and all others together weigh more, so that any workgroup may have the
// winner.
TEST_F(SamplingTest, SeveralWorkgroupsPerRowGiveTheSameTokenAsOne) {
  constexpr uint32_t kVocab = 60007, kRows = 24;
  const SamplingShape shape{.rows = kRows, .vocab = kVocab};
  const SamplingPlan shared = gpu_plan(shape);
  SamplingPlan alone = shared;
  ASSERT_GT(shared.pick->groups.x, 1u);
  alone.pick->groups.x = 1;
  auto logits = random_floats(size_t{kRows} * kVocab, 20, 0.01f);
  std::vector<ReferenceRow> rows;
  for (uint32_t r = 0; r < kRows; ++r) {
    logits[r * kVocab + 100 * r] = 10.0f;
    rows.push_back({.options = {.seed = r}, .counter = r});
    if (r % 3 == 1) rows.back().options.top_p = 0.9f;
    if (r % 3 == 2) rows.back().options.min_p = 1e-6f;
  }
  const Sampled a = sample(shared, kVocab, logits, rows), b = sample(alone, kVocab, logits, rows);
  uint32_t small = 0;
  for (uint32_t r = 0; r < kRows; ++r) {
    EXPECT_EQ(a.results[r].id, b.results[r].id) << "row " << r;
    EXPECT_EQ(a.results[r].kept, b.results[r].kept) << "row " << r;
    small += a.results[r].id != 100 * r ? 1 : 0;
  }
  EXPECT_GT(small, kRows / 3);
}

TEST_F(SamplingTest, DrawsFollowTheDistribution) {
  constexpr uint32_t kVocab = 120, kDraws = 20480;
  constexpr double kFits = 1e-3, kDoesNot = 1e-6;
  // Falls slowly, so that every token that a filter might wrongly keep or drop is drawn often.
  std::vector<float> one(kVocab);
  for (uint32_t i = 0; i < kVocab; ++i) one[i * 37 % kVocab] = -0.04f * static_cast<float>(i);
  std::vector<float> logits;
  for (uint32_t i = 0; i < kDraws; ++i) logits.insert(logits.end(), one.begin(), one.end());
  const SamplingShape shape{.rows = kDraws, .vocab = kVocab};
  const SamplingPlan plan = choose_sampling(device().caps(), shape);
  for (const SamplingOptions& options :
       {SamplingOptions{.seed = 1},
        {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.02f, .seed = 2},
        {.temperature = 0.4f, .top_k = 30, .seed = 3},
        {.temperature = 0.6f, .top_p = 0.8f, .seed = 0xfeedface12345678},
        {.min_p = 0.1f, .seed = 5}}) {
    std::vector<ReferenceRow> rows;
    for (uint32_t i = 0; i < kDraws; ++i) rows.push_back({.options = options, .counter = i});
    const std::vector<uint32_t> draws = sample(plan, kVocab, logits, rows).ids;
    EXPECT_GT(draws_p(draws, reference_sample(one, rows[0])), kFits) << "seed " << options.seed;

    // The test would notice a slightly wrong temperature, one token more, or one less.
    ReferenceRow wrong = rows[0];
    wrong.options.temperature *= 1.15f;
    EXPECT_LT(draws_p(draws, reference_sample(one, wrong)), kDoesNot) << "seed " << options.seed;
    const uint32_t kept = reference_sample(one, rows[0]).kept;
    if (kept > 60) continue;  // the last of that many is too rare to be missed
    for (const uint32_t top_k : {kept - 1, kept + 1}) {
      wrong.options = {.temperature = options.temperature, .top_k = top_k};
      EXPECT_LT(draws_p(draws, reference_sample(one, wrong)), kDoesNot)
          << "seed " << options.seed << " with top_k " << top_k;
    }
  }
}

TEST_F(SamplingTest, SeedsAndCountersChangeTheDraw) {
  constexpr uint32_t kVocab = 1000, kRows = 96;
  const std::vector<float> logits(size_t{kRows} * kVocab, 0.0f);
  std::vector<ReferenceRow> rows(kRows);
  for (uint32_t r = 0; r < kRows; ++r) {
    // Each third of the rows varies one of: low word, high word, counter.
    rows[r].options.seed = r < 32 ? r + 1 : r < 64 ? uint64_t{r} << 32 : 7;
    rows[r].counter = r < 64 ? 0 : r;
  }
  std::vector<uint32_t> ids =
      sample(choose_sampling(device().caps(), {kRows, kVocab}), kVocab, logits, rows).ids;
  std::sort(ids.begin(), ids.end());
  const auto different = std::unique(ids.begin(), ids.end()) - ids.begin();
  EXPECT_GT(different, 80);  // 91 are expected of 96 draws from 1000
}

TEST_F(SamplingTest, PaddingRowsAreLeftUnchanged) {
  constexpr uint32_t kVocab = 64;
  for (const bool greedy : {false, true}) {
    const SamplingShape shape{.rows = 3, .vocab = kVocab, .greedy = greedy};
    const SamplingPlan plan = choose_sampling(device().caps(), shape);
    const Buffer counts = filled(std::vector<uint32_t>(3, 0));
    ASSERT_ASSIGN(const params::SamplingRow row,
                  make_sampling_row({.temperature = 0}, {.id_index = 1}));
    const Buffer rows = filled(std::vector<params::SamplingRow>{{}, row, {}});
    const Buffer logits = filled(random_floats(3 * kVocab, 1)), unused = poisoned(64);
    const Buffer scratch = poisoned(plan.scratch_bytes()), ids = poisoned(12);
    const Buffer results = poisoned(3 * sizeof(params::SamplingResult));
    const Buffer top = poisoned(3 * params::kMaxTopLogprobs * sizeof(params::TokenLogprob));
    const auto record = [&](CommandRecorder& recorder, const SamplingShape& wanted) {
      return record_sampling(recorder, pipelines(), plan,
                             {.logits = logits.all(),
                              .rows = rows.all(),
                              .biases = unused.all(),
                              .history_lengths = unused.all(),
                              .history = unused.all(),
                              .scratch = scratch.all(),
                              .counts = counts.all(),
                              .ids = ids.all(),
                              .results = results.all(),
                              .top = top.all(),
                              .words = unused.all(),
                              .shape = wanted});
    };
    run([&](CommandRecorder& recorder) -> Status {
      const SamplingShape other{.rows = 3, .vocab = kVocab, .greedy = !greedy};
      EXPECT_FALSE(record(recorder, other).ok()) << "a plan for other rows";
      return record(recorder, shape);
    });
    const auto written = read<uint32_t>(ids);
    EXPECT_EQ(written[0], 0xffffffffu);
    EXPECT_LT(written[1], kVocab);
    EXPECT_EQ(written[2], 0xffffffffu);
    EXPECT_EQ(read<params::SamplingResult>(results)[0].id, 0xffffffffu);
    EXPECT_EQ(read<params::SamplingResult>(results)[2].id, 0xffffffffu);
    EXPECT_EQ(read<uint32_t>(counts), std::vector<uint32_t>(3, 0));
  }
}

TEST_F(SamplingTest, UnsupportedShapesAreRefused) {
  const Buffer any = poisoned(64);
  for (const SamplingShape shape : {SamplingShape{0, 10}, {1, 0}, {1, 262145}, {1, 17}}) {
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status =
        record_sampling(recorder, pipelines(), choose_sampling(device().caps(), shape),
                        {.logits = any.all(),
                         .rows = any.all(),
                         .biases = any.all(),
                         .history_lengths = any.all(),
                         .history = any.all(),
                         .scratch = any.all(),
                         .counts = any.all(),
                         .ids = any.all(),
                         .results = any.all(),
                         .top = any.all(),
                         .shape = shape});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    ASSERT_OK(recorder.finish());
  }
}

}  // namespace
}  // namespace hearth::testing
