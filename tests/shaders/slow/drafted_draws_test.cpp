// A million draws by the kernels, as verification rows with everything that changes logits: they
// follow the distribution, and a draft model's draws, with the same seeds and counters, agree with
// them nearly as often as rejection sampling would accept them.
#include <random>
#include <string>

#include "tests/support/sampling.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kRows = 65'000;  // per run of the kernels
constexpr uint32_t kRuns = 2;

class DraftedDrawsTest : public SamplingGpuTest {
 protected:
  // Copies of a row, each with its own seed or counter.
  static std::vector<ReferenceRow> rows_of(const ReferenceRow& row, uint32_t run) {
    std::vector<ReferenceRow> rows(kRows, row);
    for (uint32_t i = 0; i < kRows; ++i) {
      rows[i].options.seed = row.options.seed + (uint64_t{run} << 40) + i / 500;
      rows[i].counter = i % 500;
    }
    return rows;
  }

  std::vector<uint32_t> draw(const std::vector<float>& logits, const ReferenceRow& row) {
    const SamplingShape shape{
        .rows = kRows, .vocab = kVocab, .extras = true, .stages = uses_stages(row.options)};
    std::vector<float> copies;
    for (uint32_t i = 0; i < kRows; ++i) copies.insert(copies.end(), logits.begin(), logits.end());
    std::vector<uint32_t> draws;
    for (uint32_t run = 0; run < kRuns; ++run) {
      const Sampled sampled =
          sample(choose_sampling(device().caps(), shape), kVocab, copies, rows_of(row, run));
      for (const params::SamplingResult& result : sampled.results) draws.push_back(result.id);
    }
    return draws;
  }
};

std::vector<double> shares(const ReferenceSample& sample) {
  std::vector<double> shares(kVocab);
  for (const ReferenceCandidate& candidate : sample.candidates)
    shares[candidate.id] = candidate.share;
  return shares;
}

// A verification row with everything else that changes logits, and log-probabilities.
ReferenceRow row_with(const SamplingOptions& options) {
  ReferenceRow row{.options = options};
  row.options.top_logprobs = 2;
  row.biases = {{.token = 7, .bias = 0.8f}, {.token = 11, .bias = -1.5f}};
  row.history = {{.token = 3, .count = 2}, {.token = 20, .count = 0}};
  row.path = {20, 41, 3};
  row.mask.assign(kVocab, true);
  row.mask[5] = row.mask[44] = false;
  row.dry = {{.token = 2, .bias = 0.7f}};
  row.mirostat_mu = 2 * options.mirostat_tau;
  return row;
}

TEST_F(DraftedDrawsTest, AMillionDrawsFollowTheDistributionAndDraftsAgree) {
  const std::vector<SamplingOptions> all = {
      {.seed = 1},
      {.temperature = 0.7f, .top_k = 20, .repetition_penalty = 1.2f, .seed = 2},
      {.temperature = 1.3f, .top_p = 0.9f, .frequency_penalty = 0.3f, .seed = 3},
      {.min_p = 0.05f, .presence_penalty = 0.5f, .seed = 4},
      {.seed = 5, .typical_p = 0.8f},
      {.top_k = 30, .seed = 6, .xtc_probability = 1.0f, .xtc_threshold = 0.06f},
      {.seed = 7, .top_n_sigma = 1.5f, .dynatemp_range = 0.5f, .smoothing_factor = 0.4f},
      {.temperature = 0.9f, .seed = 8, .mirostat = 2, .mirostat_tau = 4.0f},
  };
  const std::vector<float> logits = random_floats(kVocab, 3, 1.2f);
  const std::vector<float> difference = random_floats(kVocab, 4, 0.3f);
  std::vector<float> drafted(kVocab);
  for (uint32_t i = 0; i < kVocab; ++i) drafted[i] = logits[i] + difference[i];
  for (const SamplingOptions& options : all) {
    SCOPED_TRACE("seed " + std::to_string(options.seed));
    const ReferenceRow row = row_with(options);
    const std::vector<uint32_t> own = draw(logits, row), draft = draw(drafted, row);
    const ReferenceSample expected = reference_sample(logits, row);
    EXPECT_GT(draws_p(own, expected), 1e-3);
    EXPECT_LT(draws_p(draft, expected), 1e-6) << "the draft's distribution is another";
    const std::vector<double> p = shares(expected);
    const std::vector<double> q = shares(reference_sample(drafted, row));
    double overlap = 0, agreed = 0;
    for (uint32_t i = 0; i < kVocab; ++i) overlap += std::min(p[i], q[i]);
    for (size_t i = 0; i < own.size(); ++i) agreed += own[i] == draft[i] ? 1 : 0;
    agreed /= static_cast<double>(own.size());
    EXPECT_GT(agreed, overlap / (2 - overlap) - 0.005) << "of " << overlap;
    EXPECT_LT(agreed, overlap + 0.005);
  }
}

}  // namespace
}  // namespace hearth::testing
