#include "engine/weights/fit.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace hearth {
namespace {

// Below this the reciprocal of a scale overflows; such weights are treated as zero.
constexpr float kTiny = 1e-30f;

// Element i is halfway between values i and i + 1 of the IQ4 table.
constexpr float boundary(std::size_t i) {
  return 0.5f * static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]);
}

// The importance of each weight's error.
struct Importance {
  explicit Importance(std::span<const float> x) {
    assert(x.size() <= kMaxFitWeights);
    float squares = 0;
    for (const float value : x) squares += value * value;
    const float rms = std::sqrt(squares / static_cast<float>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) of[i] = rms + std::fabs(x[i]);
  }
  std::array<float, kMaxFitWeights> of{};
};

// Keeps the scale with the smallest error of all that are tried. For given integers q the best
// scale is sum(w x q) / sum(w q q); its error is the smaller, the larger sum(w x q)^2 / sum(w q q)
// is.
class BestScale {
 public:
  void consider(float xq, float qq) {
    if (qq > 0 && xq * xq > gain_ * qq) {
      gain_ = xq * xq / qq;
      scale_ = xq / qq;
    }
  }
  float scale() const { return scale_; }

 private:
  float gain_ = 0;
  float scale_ = 0;
};

// Tries lines: weight = scale * q - minimum, with the nearest q for each weight.
class AffineSearch {
 public:
  AffineSearch(std::span<const float> x, int high)
      : x_(x), importance_(x), highest_(static_cast<float>(high)) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum_w_ += importance_.of[i];
      sum_x_ += importance_.of[i] * x[i];
    }
  }

  // The weighted error of a line.
  float error(const AffineFit& fit) const {
    const float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
    float error = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const float difference = fit.scale * round(x_[i], fit.minimum, inverse) - fit.minimum - x_[i];
      error += importance_.of[i] * difference * difference;
    }
    return error;
  }

  // Replaces `fit` by the best line for the integers nearest to it, and returns the error with
  // these. If there is none, returns infinity and leaves `fit` unchanged.
  float improve(AffineFit& fit) const {
    const float inverse = 1 / fit.scale;
    std::array<float, kMaxFitWeights> q;
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      q[i] = round(x_[i], fit.minimum, inverse);
      const float wq = importance_.of[i] * q[i];
      sum_q += wq;
      sum_qq += wq * q[i];
      sum_xq += wq * x_[i];
    }
    // The best line through (q, x). If its minimum would be negative, which the formats cannot
    // store, the best one through the origin.
    const float determinant = sum_w_ * sum_qq - sum_q * sum_q;
    if (!(determinant > 0)) return INFINITY;
    AffineFit best{.scale = (sum_w_ * sum_xq - sum_x_ * sum_q) / determinant,
                   .minimum = (sum_q * sum_xq - sum_qq * sum_x_) / determinant};
    if (best.minimum < 0) best = {.scale = sum_xq / sum_qq, .minimum = 0};
    if (!(best.scale > kTiny)) return INFINITY;
    fit = best;
    float error = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const float difference = fit.scale * q[i] - fit.minimum - x_[i];
      error += importance_.of[i] * difference * difference;
    }
    return error;
  }

 private:
  float round(float x, float minimum, float inverse) const {
    return std::clamp(round_even((x + minimum) * inverse), 0.0f, highest_);
  }

  const std::span<const float> x_;
  const Importance importance_;
  const float highest_;
  float sum_w_ = 0, sum_x_ = 0;
};

}  // namespace

float fit_scale(std::span<const float> x, int low, int high) {
  const float largest = largest_magnitude(x);
  if (std::fabs(largest) < kTiny) return 0;
  const Importance importance(x);
  const auto lowest = static_cast<float>(low);
  const auto highest = static_cast<float>(high);
  BestScale best;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = (lowest + 0.1f * static_cast<float>(step)) / largest;
    float xq = 0;
    float qq = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float q = std::clamp(round_even(x[i] * inverse), lowest, highest);
      xq += importance.of[i] * x[i] * q;
      qq += importance.of[i] * q * q;
    }
    best.consider(xq, qq);
  }
  return best.scale();
}

AffineFit fit_affine(std::span<const float> x, int high) {
  const float smallest = std::min(0.0f, *std::min_element(x.begin(), x.end()));
  const float largest = *std::max_element(x.begin(), x.end());
  if (largest - smallest < kTiny) return {.scale = 0, .minimum = -smallest};

  const AffineSearch search(x, high);
  AffineFit best{.scale = (largest - smallest) / static_cast<float>(high), .minimum = -smallest};
  float best_error = search.error(best);
  for (int step = -10; step <= 10; ++step) {
    // Each try starts from the best minimum so far, which finds better lines than always starting
    // from the smallest weight.
    const float range = largest + best.minimum;
    if (range < kTiny) break;
    AffineFit fit{.scale = range / (static_cast<float>(high) + 0.1f * static_cast<float>(step)),
                  .minimum = best.minimum};
    const float error = search.improve(fit);
    if (error < best_error) {
      best_error = error;
      best = fit;
    }
  }
  return best;
}

AffineSteps fit_affine_steps(std::span<const float> x, int high, const AffineFit& fit,
                             const AffineFit& unit, int most) {
  const auto nearest = [&](float value, float step) {
    return step > 0 ? static_cast<int>(round_even(std::min(value / step, static_cast<float>(most))))
                    : 0;
  };
  const AffineSearch search(x, high);
  const AffineSteps middle{nearest(fit.scale, unit.scale), nearest(fit.minimum, unit.minimum)};
  AffineSteps best = middle;
  float best_error = INFINITY;
  for (int scale = middle.scale - 1; scale <= middle.scale + 1; ++scale)
    for (int minimum = middle.minimum - 1; minimum <= middle.minimum + 1; ++minimum) {
      if (std::min(scale, minimum) < 0 || std::max(scale, minimum) > most) continue;
      const float error = search.error({.scale = unit.scale * static_cast<float>(scale),
                                        .minimum = unit.minimum * static_cast<float>(minimum)});
      if (error < best_error) {
        best_error = error;
        best = {scale, minimum};
      }
    }
  return best;
}

int nearest_iq4(float x) {
  int nibble = 0;  // the number of boundaries below x; counting them all needs no branches
  for (std::size_t i = 0; i + 1 < kIq4Values.size(); ++i) nibble += x > boundary(i) ? 1 : 0;
  return nibble;
}

float fit_iq4_scale(std::span<const float> x) {
  const float largest = largest_magnitude(x);
  if (std::fabs(largest) < kTiny) return 0;
  const Importance importance(x);
  BestScale best;
  // The largest weight may be at either end of the table, and clipping it slightly may help.
  for (const int end : {kIq4Values.front(), kIq4Values.back()}) {
    for (int step = -7; step <= 7; ++step) {
      const float inverse = static_cast<float>(end + step) / largest;
      float xq = 0;
      float qq = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto nibble = static_cast<std::size_t>(nearest_iq4(x[i] * inverse));
        const auto q = static_cast<float>(kIq4Values[nibble]);
        xq += importance.of[i] * x[i] * q;
        qq += importance.of[i] * q * q;
      }
      best.consider(xq, qq);
    }
  }
  return best.scale();
}

float largest_magnitude(std::span<const float> x) {
  // The magnitude is a separate variable because clang 19 on ARM miscompiles a comparison of
  // |value| with |largest| if the number of values is known.
  float largest = 0;
  float magnitude = 0;
  for (const float value : x) {
    if (std::fabs(value) > magnitude) {
      magnitude = std::fabs(value);
      largest = value;
    }
  }
  return largest;
}

}  // namespace hearth
