// What steps cost by rows, when the first steps of a size are slower than later ones.
#include "engine/decoding/speculation/row_costs.h"

#include <gtest/gtest.h>

#include "engine/decoding/speculation/length_choice.h"

namespace hearth {
namespace {

TEST(RowCostsLearning, AnEstimateFromFewStepsIsForgottenSooner) {
  RowCosts costs;
  for (int i = 0; i < 2; ++i) costs.add(4, 1.0);
  for (int i = 0; i < 40; ++i) costs.add(8, 2.0);
  EXPECT_TRUE(costs.measured(4));
  for (int i = 0; i < 100; ++i) costs.pass();
  EXPECT_FALSE(costs.measured(4)) << "it was one step";
  EXPECT_TRUE(costs.measured(8));
  costs.add(4, 1.5);
  EXPECT_EQ(costs.seconds(4), 1.5);
  for (int i = 0; i < 100; ++i) costs.pass();
  EXPECT_TRUE(costs.measured(4)) << "two steps are worth more than one";
  for (int i = 0; i < 5000; ++i) costs.pass();
  EXPECT_FALSE(costs.measured(8));
}

TEST(RowCostsLearning, TheFastestOfTheFirstStepsCounts) {
  RowCosts costs;
  for (const double seconds : {9.0, 3.0, 1.0, 2.0, 1.5}) costs.add(8, seconds);
  EXPECT_EQ(costs.seconds(8), 1.0);
  costs.add(8, 1.2);
  EXPECT_GT(*costs.seconds(8), 1.0);
  EXPECT_LT(*costs.seconds(8), 1.2);
}

// One request whose guesses are right at this rate; steps cost 1 + 0.02 per further row, and 0.1 if
// they wait for the host. The first steps of a size take longer.
class SlowStart {
 public:
  SlowStart(double rate, double slower, std::uint32_t steps)
      : rate_(rate), slower_(slower), slow_steps_(steps) {}

  std::uint32_t run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::vector<ProposalChance> chances{{.acceptance = rate_, .most = 32}};
      choice_.choose({.ahead = &ahead_, .waiting = &waiting_}, 1, chances, 32, lengths_);
      const std::uint32_t rows = 1 + lengths_.front();
      double seconds = 1 + 0.02 * lengths_.front();
      if (rows == 1) {
        ahead_.add(rows, seconds);
        waiting_.pass();
        continue;
      }
      seconds += 0.1;
      if (++seen_[rows] <= slow_steps_) seconds *= slower_;
      waiting_.add(rows, seconds);
      ahead_.pass();
    }
    return lengths_.front();
  }

 private:
  double rate_, slower_;
  std::uint32_t slow_steps_;
  RowCosts ahead_, waiting_;
  LengthChoice choice_;
  std::vector<std::uint32_t> lengths_;
  std::array<std::uint32_t, 64> seen_{};
};

// Once it had given up, it did not learn that later steps are faster.
TEST(RowCostsLearning, ASlowStartDoesNotEndSpeculation) {
  EXPECT_GE(SlowStart(0.7, 3.0, 3).run(1500), 6u);
  EXPECT_GE(SlowStart(0.9, 2.0, 2).run(1500), 12u);
}

TEST(RowCostsLearning, GuessesThatAreSeldomRightStayOff) {
  EXPECT_EQ(SlowStart(0.05, 1.0, 0).run(1500), 0u);
}

}  // namespace
}  // namespace hearth
