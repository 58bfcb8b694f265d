// How often a draft model that draws with the model's noise is right: both take the token with the
// largest logit + noise, and the noise of a token is the same for both. It is compared with what
// other ways of speculative sampling reach: docs/lab/speculation.md has the table.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/decoding/acceptance.h"
#include "tests/support/reference_judging.h"

namespace hearth {
namespace {

using testing::judge_proposals;

constexpr uint32_t kTokens = 1000;
constexpr uint32_t kDraws = 4000;

struct TwoModels {
  std::vector<double> model, draft;
};

std::vector<double> probabilities(const std::vector<double>& logits) {
  std::vector<double> result;
  double sum = 0;
  for (const double logit : logits) {
    result.push_back(std::exp(logit));
    sum += result.back();
  }
  for (double& each : result) each /= sum;
  return result;
}

// Logits that have most of their spread in common; `apart` is how far the rest spreads.
TwoModels similar_models(uint32_t seed, double spread, double apart) {
  std::mt19937 random(seed);
  std::extreme_value_distribution<double> common(0, spread);
  std::normal_distribution<double> own(0, apart);
  std::vector<double> model, draft;
  for (uint32_t token = 0; token < kTokens; ++token) {
    const double shared = common(random);
    model.push_back(shared + own(random));
    draft.push_back(shared + own(random));
  }
  return {.model = probabilities(model), .draft = probabilities(draft)};
}

// The smallest of independent exponential variables with these rates is each one's with its
// probability; -ln of such a variable is the noise.
uint32_t draw(const std::vector<double>& probabilities, const std::vector<double>& exponentials) {
  uint32_t drawn = 0;
  for (uint32_t token = 1; token < probabilities.size(); ++token)
    if (exponentials[token] * probabilities[drawn] < exponentials[drawn] * probabilities[token])
      drawn = token;
  return drawn;
}

// The share of draws at which the drafted token is accepted.
double accepted_share(const TwoModels& models, bool same_noise) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> exponential;
  std::vector<double> noise(kTokens), other(kTokens);
  uint32_t accepted = 0;
  Judgement judgement;
  for (uint32_t i = 0; i < kDraws; ++i) {
    for (double& each : noise) each = exponential(random);
    for (double& each : other) each = exponential(random);
    const uint32_t proposed[] = {draw(models.draft, same_noise ? noise : other)};
    const uint32_t sampled[] = {draw(models.model, noise), 0};
    judge_proposals(proposed, {}, sampled, judgement);
    accepted += static_cast<uint32_t>(judgement.path.size());
  }
  return static_cast<double>(accepted) / kDraws;
}

// What rejection sampling of a drafted token accepts, which no method exceeds.
double overlap(const TwoModels& models) {
  double sum = 0;
  for (uint32_t token = 0; token < kTokens; ++token)
    sum += std::min(models.model[token], models.draft[token]);
  return sum;
}

// What the same noise is bound to accept (Daliri, Musco and Suresh, 2024): of two distributions of
// which a share d does not overlap, at least (1 - d) / (1 + d).
double least_agreement(double overlap) { return overlap / (2 - overlap); }

TEST(CoupledDraws, TheSameNoiseAcceptsNearlyAsMuchAsRejectionSampling) {
  for (const double spread : {1.0, 2.0})
    for (const double apart : {0.15, 0.5}) {
      const TwoModels models = similar_models(1, spread, apart);
      const double most = overlap(models);
      const double coupled = accepted_share(models, true);
      constexpr double kChance = 0.02;  // of 4,000 draws
      EXPECT_GT(coupled, 1.2 * accepted_share(models, false)) << spread << " " << apart;
      EXPECT_GT(coupled, least_agreement(most) - kChance) << spread << " " << apart;
      EXPECT_GT(coupled, most - 0.09) << spread << " " << apart;
      EXPECT_LT(coupled, most + kChance) << spread << " " << apart;
    }
}

}  // namespace
}  // namespace hearth
