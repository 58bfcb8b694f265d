// The control panel's rows match the engine's switches and limits, and a click changes one of them.
#include "ui/data/control_data.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ControlData, EveryNamedPolicyHasADescription) {
  for (const std::string_view name : policy_names()) {
    EXPECT_NE(policy_description(name), policy_description("custom")) << name;
    EXPECT_LT(policy_description(name).size(), 130u) << "one line";
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

TEST(ControlData, AnInvalidValueChangesNothing) {
  const Policy policy = *named_policy("static");
  EXPECT_EQ(with_switch(policy, "layout", "packed").layout, Layout::kPacked);
  EXPECT_EQ(with_switch(policy, "layout", "sideways"), policy);
  EXPECT_EQ(with_switch(policy, "colour", "blue"), policy);
  EXPECT_EQ(with_switch(policy, "max-chunk", "64").max_chunk_tokens, 64u);
}

TEST(ControlData, LimitsGoUpToThoseTheEngineWasCreatedWith) {
  const SchedulerLimits created{.max_sequences = 16, .max_step_tokens = 512, .pool_blocks = 100};
  SchedulerLimits now = with_limit(created, LimitKind::kSequences, 4);
  now = with_limit(now, LimitKind::kStepTokens, 0);
  now = with_limit(now, LimitKind::kPoolBlocks, 30);
  const std::vector<LimitRow> rows = limit_rows(now, created);
  ASSERT_EQ(rows.size(), kLimitKinds);
  EXPECT_EQ(rows[0].value, 4u);
  EXPECT_EQ(rows[0].max, 16u);
  EXPECT_EQ(rows[1].value, 1u) << "never 0";
  EXPECT_EQ(rows[1].max, 512u);
  EXPECT_EQ(rows[2].value, 30u);
  EXPECT_EQ(rows[2].max, 100u);
}

TEST(ControlData, PaceAndSliderAreInverses) {
  EXPECT_DOUBLE_EQ(pace_from_slider(0), kSlowestPace);
  EXPECT_DOUBLE_EQ(pace_from_slider(1), kFastestPace);
  for (const double slider : {0.0, 0.1, 0.5, 0.9, 1.0})
    EXPECT_NEAR(slider_from_pace(pace_from_slider(slider)), slider, 1e-12);
  EXPECT_EQ(slider_from_pace(1e9), 1.0);
  EXPECT_EQ(slider_from_pace(1e-9), 0.0);
}

}  // namespace
}  // namespace hearth
