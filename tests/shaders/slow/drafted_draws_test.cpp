// More than a million draws by the kernels, with every sampler, as verification rows with
// everything that changes logits: they follow the distribution, and a draft model's draws, with the
// same seeds and counters, agree with them nearly as often as rejection sampling would accept them.
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

// The distribution of a row's draws. XTC applies to a part of the draws, which then have other
// shares; a draft decides that with the same random bits, so it agrees within each part.
struct Part {
  double weight = 1;
  SamplingOptions options;
};

std::vector<Part> parts_of(const SamplingOptions& options) {
  SamplingOptions with_xtc = options, without = options;
  with_xtc.xtc_probability = 1;
  without.xtc_probability = 0;
  const double probability = options.xtc_probability;
  std::vector<Part> parts;
  if (probability > 0) parts.push_back({.weight = probability, .options = with_xtc});
  if (probability < 1) parts.push_back({.weight = 1 - probability, .options = without});
  return parts;
}

// The row's candidates with the weighted sum of all parts' shares.
ReferenceSample reference_mixture(const std::vector<float>& logits, ReferenceRow row) {
  std::vector<double> shares(kVocab);
  ReferenceSample sample;
  for (const Part& part : parts_of(row.options)) {
    row.options = part.options;
    sample = reference_sample(logits, row);
    for (const ReferenceCandidate& candidate : sample.candidates)
      shares[candidate.id] += part.weight * candidate.share;
  }
  for (ReferenceCandidate& candidate : sample.candidates) candidate.share = shares[candidate.id];
  return sample;
}

// The largest probability with which draws from two distributions can agree.
double overlap_of(const ReferenceSample& a, const ReferenceSample& b) {
  std::vector<double> shares(kVocab);
  for (const ReferenceCandidate& candidate : a.candidates) shares[candidate.id] = candidate.share;
  double overlap = 0;
  for (const ReferenceCandidate& candidate : b.candidates)
    overlap += std::min(shares[candidate.id], candidate.share);
  return overlap;
}

// Draws with the same noise agree at least this often: nearly as often as is possible.
double least_agreement(const std::vector<float>& logits, const std::vector<float>& drafted,
                       ReferenceRow row) {
  double least = 0;
  for (const Part& part : parts_of(row.options)) {
    row.options = part.options;
    const double overlap =
        overlap_of(reference_sample(logits, row), reference_sample(drafted, row));
    least += part.weight * overlap / (2 - overlap);
  }
  return least;
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
      {.temperature = 1.2f, .seed = 9, .top_a = 0.5f},
      {.seed = 10, .epsilon_cutoff = 0.01f},
      {.temperature = 0.8f, .seed = 11, .eta_cutoff = 0.05f},
      {.seed = 12, .xtc_probability = 0.4f, .xtc_threshold = 0.06f},
      // Another order. Every one of its samplers changes the distribution.
      {.temperature = 1.4f,
       .top_p = 0.9f,
       .min_p = 0.2f,
       .seed = 13,
       .dynatemp_range = 0.8f,
       .dynatemp_exponent = 4.0f,
       .smoothing_factor = 0.3f,
       .smoothing_curve = 3.0f,
       .order = {.samplers = {SamplerKind::kTemperature, SamplerKind::kMinP,
                              SamplerKind::kSmoothing, SamplerKind::kTopP}}},
  };
  const std::vector<float> logits = random_floats(kVocab, 3, 1.2f);
  const std::vector<float> difference = random_floats(kVocab, 4, 0.3f);
  std::vector<float> drafted(kVocab);
  for (uint32_t i = 0; i < kVocab; ++i) drafted[i] = logits[i] + difference[i];
  for (const SamplingOptions& options : all) {
    SCOPED_TRACE("seed " + std::to_string(options.seed));
    const ReferenceRow row = row_with(options);
    const std::vector<uint32_t> own = draw(logits, row), draft = draw(drafted, row);
    const ReferenceSample expected = reference_mixture(logits, row);
    EXPECT_GT(draws_p(own, expected), 1e-3);
    EXPECT_LT(draws_p(draft, expected), 1e-6) << "the draft's distribution is another";
    double agreed = 0;
    for (size_t i = 0; i < own.size(); ++i) agreed += own[i] == draft[i] ? 1 : 0;
    agreed /= static_cast<double>(own.size());
    EXPECT_GT(agreed, least_agreement(logits, drafted, row) - 0.005);
    EXPECT_LT(agreed, overlap_of(expected, reference_mixture(drafted, row)) + 0.005);
  }
}

}  // namespace
}  // namespace hearth::testing
