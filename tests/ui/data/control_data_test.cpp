// The control panel's rows are the engine's switches and limits, and a click changes one of them.
#include "ui/data/control_data.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ControlData, EveryNamedPolicySaysWhatItIs) {
  for (const std::string_view name : policy_names()) {
    EXPECT_NE(policy_about(name), policy_about("custom")) << name;
    EXPECT_LT(policy_about(name).size(), 130u) << "one line";
  }
}

TEST(ControlData, RowsHaveTheValuesOfThePolicy) {
  for (const std::string_view name : policy_names()) {
    const Policy policy = *named_policy(name);
    const std::vector<SwitchRow> rows = switch_rows(policy);
    ASSERT_EQ(rows.size(), policy_switches().size());
    Policy rebuilt;
    for (const SwitchRow& row : rows) {
      const std::string value =
          row.values.empty() ? std::to_string(row.number) : std::string(row.values[row.selected]);
      EXPECT_EQ(value, switch_value(policy, row.name)) << row.name;
      rebuilt = with_switch(rebuilt, row.name, value);
    }
    EXPECT_EQ(rebuilt, policy);
  }
}

TEST(ControlData, AWrongValueChangesNothing) {
  const Policy policy = *named_policy("static");
  EXPECT_EQ(with_switch(policy, "layout", "packed").layout, Layout::kPacked);
  EXPECT_EQ(with_switch(policy, "layout", "sideways"), policy);
  EXPECT_EQ(with_switch(policy, "colour", "blue"), policy);
  EXPECT_EQ(with_switch(policy, "max-chunk", "64").max_chunk_tokens, 64u);
}

TEST(ControlData, LimitsGoUpToWhatTheEngineWasMadeFor) {
  const SchedulerLimits made{.max_sequences = 16, .max_step_tokens = 512, .pool_blocks = 100};
  SchedulerLimits now = with_limit(made, LimitKind::kSequences, 4);
  now = with_limit(now, LimitKind::kStepTokens, 0);
  now = with_limit(now, LimitKind::kPoolBlocks, 30);
  const std::vector<LimitRow> rows = limit_rows(now, made);
  ASSERT_EQ(rows.size(), kLimitKinds);
  EXPECT_EQ(rows[0].value, 4u);
  EXPECT_EQ(rows[0].most, 16u);
  EXPECT_EQ(rows[1].value, 1u) << "never 0";
  EXPECT_EQ(rows[1].most, 512u);
  EXPECT_EQ(rows[2].value, 30u);
  EXPECT_EQ(rows[2].most, 100u);
}

TEST(ControlData, PaceAndSliderAreEachOthersInverse) {
  EXPECT_DOUBLE_EQ(pace_at(0), kSlowestPace);
  EXPECT_DOUBLE_EQ(pace_at(1), kFastestPace);
  for (const double slider : {0.0, 0.1, 0.5, 0.9, 1.0})
    EXPECT_NEAR(slider_at(pace_at(slider)), slider, 1e-12);
  EXPECT_EQ(slider_at(1e9), 1.0);
  EXPECT_EQ(slider_at(1e-9), 0.0);
}

}  // namespace
}  // namespace hearth
