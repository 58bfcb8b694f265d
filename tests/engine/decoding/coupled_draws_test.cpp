// How often a draft model that draws with the model's random numbers is right: both take the token
// at which the running sum of probabilities, in order of ids, exceeds the same random number. It is
// compared with what other ways of speculative sampling reach: docs/lab/speculation.md has the
// table.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/decoding/acceptance.h"

namespace hearth {
namespace {

constexpr uint32_t kTokens = 2000;
constexpr uint32_t kDraws = 20000;

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

uint32_t token_at(const std::vector<double>& probabilities, double target) {
  for (uint32_t token = 0; token < probabilities.size(); ++token) {
    if (target < probabilities[token]) return token;
    target -= probabilities[token];
  }
  return kTokens - 1;
}

// The share of draws at which the drafted token is accepted.
double accepted_share(const TwoModels& models, bool same_random_numbers) {
  std::mt19937_64 random(7), other_random(8);
  std::uniform_real_distribution<double> uniform(0, 1);
  uint32_t accepted = 0;
  Judgement judgement;
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const double number = uniform(random), other = uniform(other_random);
    const uint32_t proposed[] = {token_at(models.draft, same_random_numbers ? number : other)};
    const uint32_t sampled[] = {token_at(models.model, number), 0};
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

TEST(CoupledDraws, TheSameRandomNumbersMakeADraftRightMoreOften) {
  for (const double spread : {1.0, 2.0})
    for (const double apart : {0.15, 0.5}) {
      const TwoModels models = similar_models(1, spread, apart);
      const double independent = accepted_share(models, false);
      const double coupled = accepted_share(models, true);
      EXPECT_GT(coupled, 1.2 * independent) << spread << " " << apart;
      EXPECT_LT(coupled, overlap(models) + 0.01) << spread << " " << apart;
    }
}

}  // namespace
}  // namespace hearth
