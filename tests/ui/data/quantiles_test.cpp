#include "ui/data/quantiles.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// The nearest-rank quantile, by sorting everything.
double sorted_quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(q * static_cast<double>(values.size()) - 1e-9);
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

TEST(Quantiles, KnownValues) {
  Quantiles values;
  EXPECT_EQ(values.quantile(0.5), 0);
  for (int i = 1; i <= 100; ++i) values.add(i * 1e-3);
  EXPECT_DOUBLE_EQ(values.quantile(0.5), 0.050);
  EXPECT_DOUBLE_EQ(values.quantile(0.9), 0.090);
  EXPECT_DOUBLE_EQ(values.quantile(0.99), 0.099);
  EXPECT_DOUBLE_EQ(values.quantile(1), 0.1);
  EXPECT_DOUBLE_EQ(values.quantile(0), 0.001);
  EXPECT_NEAR(values.mean(), 0.0505, 1e-12);
}

TEST(Quantiles, AreExactWhileTheWindowMoves) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> draw(-5, 2);
  Quantiles values;
  std::deque<double> window;
  for (int i = 0; i < 5000; ++i) {
    // Includes values beyond both ends of the bins.
    const double value = i % 97 == 0 ? 1e-9 : i % 89 == 0 ? 1e5 : draw(random);
    values.add(value);
    window.push_back(value);
    if (window.size() > 700) {
      values.remove_oldest(window.front());
      window.pop_front();
    }
    if (i % 131 != 0) continue;
    for (const double q : {0.01, 0.5, 0.9, 0.99})
      ASSERT_DOUBLE_EQ(values.quantile(q), sorted_quantile({window.begin(), window.end()}, q))
          << i << " " << q;
  }
  EXPECT_EQ(values.count(), 700u);
}

// A steady engine: values so close together that they share a cell, and some that are equal.
TEST(Quantiles, AreExactAmongNearlyEqualValues) {
  Quantiles values;
  std::deque<double> window;
  for (int i = 0; i < 3000; ++i) {
    const double value = i < 1000 ? 0.02 : 0.02 + 1e-9 * ((i * 7919) % 1000);
    values.add(value);
    window.push_back(value);
    if (window.size() > 800) {
      values.remove_oldest(window.front());
      window.pop_front();
    }
    if (i % 61 != 0) continue;
    for (const double q : {0.0, 0.5, 0.99, 1.0})
      ASSERT_EQ(values.quantile(q), sorted_quantile({window.begin(), window.end()}, q))
          << i << " " << q;
  }
}

TEST(Quantiles, TheHistogramCountsEveryValueOnce) {
  Quantiles values;
  for (int i = 0; i < 10; ++i) values.add(0.0015);
  for (int i = 0; i < 5; ++i) values.add(0.15);
  const std::vector<Quantiles::Bar> bars = values.histogram(8);
  ASSERT_EQ(bars.size(), 17u);  // two decades at 8 bars per decade
  EXPECT_EQ(bars.front().count, 10u);
  EXPECT_EQ(bars.back().count, 5u);
  EXPECT_LE(bars.front().from, 0.0015);
  EXPECT_GT(bars.front().to, 0.0015);
  for (size_t i = 1; i < bars.size(); ++i) EXPECT_DOUBLE_EQ(bars[i].from, bars[i - 1].to);
  values.clear();
  EXPECT_TRUE(values.histogram(8).empty());
}

TEST(Quantiles, OfAPlainList) {
  std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(quantile_of(values, 0.5), 3);
  EXPECT_EQ(quantile_of(values, 0.9), 5);
  EXPECT_EQ(quantile_of({}, 0.9), 0);
}

}  // namespace
}  // namespace hearth
