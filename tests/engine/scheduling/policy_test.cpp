#include "engine/scheduling/policy.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Policy, NamedPoliciesHaveTheirSwitches) {
  const auto expect = [](std::string_view name, std::string_view switches) {
    ASSERT_TRUE(named_policy(name).has_value()) << name;
    EXPECT_EQ(describe(*named_policy(name)), switches);
    EXPECT_EQ(policy_name(*named_policy(name)), name);
  };
  expect("no-cache",
         "admission=iteration delivery=at-once batch-window=0 batch-size=0 layout=packed "
         "phases=mixed max-chunk=0 tbt-target=0 kv=none preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=off");
  expect("static",
         "admission=request delivery=with-batch batch-window=0 batch-size=0 layout=padded "
         "phases=separate max-chunk=0 tbt-target=0 kv=reserve preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=off");
  expect("dynamic",
         "admission=request delivery=with-batch batch-window=50 batch-size=0 layout=padded "
         "phases=separate max-chunk=0 tbt-target=0 kv=reserve preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=off");
  expect("iteration",
         "admission=iteration delivery=at-once batch-window=0 batch-size=0 layout=padded "
         "phases=mixed max-chunk=0 tbt-target=0 kv=reserve preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=off");
  expect("packed",
         "admission=request delivery=at-once batch-window=0 batch-size=0 layout=packed "
         "phases=mixed max-chunk=0 tbt-target=0 kv=reserve preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=off");
  expect("continuous",
         "admission=iteration delivery=at-once batch-window=0 batch-size=0 layout=packed "
         "phases=mixed max-chunk=0 tbt-target=0 kv=on-demand preemption=recompute victim=youngest "
         "order=fcfs max-wait=0 prefix-cache=on");
  EXPECT_EQ(policy_names().size(), 6u);
  EXPECT_EQ(named_policy("contiguous"), std::nullopt);
}

TEST(Policy, EveryValueOfEverySwitchIsReadBack) {
  for (const PolicySwitch& entry : policy_switches()) {
    Policy policy;
    for (std::string_view value : entry.values) {
      EXPECT_EQ(set_switch(policy, entry.name, value), std::nullopt);
      EXPECT_EQ(switch_value(policy, entry.name), value);
    }
  }
  Policy policy;
  EXPECT_EQ(set_switch(policy, "max-chunk", "64"), std::nullopt);
  EXPECT_EQ(policy.max_chunk_tokens, 64u);
  EXPECT_EQ(set_switch(policy, "batch-window", "30"), std::nullopt);
  EXPECT_EQ(policy.batch_window_ms, 30u);
  EXPECT_EQ(set_switch(policy, "tbt-target", "25ms"), std::nullopt);
  EXPECT_EQ(switch_value(policy, "tbt-target"), "25");
  EXPECT_EQ(policy.tbt_target_ms, 25u);
  EXPECT_EQ(policy_name(policy), "custom");
}

TEST(Policy, TimesMayBeInSeconds) {
  Policy policy;
  for (const auto& [text, milliseconds] :
       {std::pair("1s", 1000u), {"0.025s", 25u}, {"2s", 2000u}, {"0s", 0u}, {"7", 7u}}) {
    EXPECT_EQ(set_switch(policy, "tbt-target", text), std::nullopt) << text;
    EXPECT_EQ(policy.tbt_target_ms, milliseconds) << text;
  }
  for (const char* const text : {"s", "-1s", "0.0001s", "1e9s", "nans", "1.s5", "0.5", "9999999s"})
    EXPECT_NE(set_switch(policy, "max-wait", text), std::nullopt) << text;
  EXPECT_NE(set_switch(policy, "max-chunk", "2s"), std::nullopt);
}

TEST(Policy, SpellingIsForgiving) {
  Policy policy;
  EXPECT_EQ(set_switch(policy, "prefix cache", "off"), std::nullopt);
  EXPECT_FALSE(policy.prefix_cache);
  EXPECT_EQ(set_switch(policy, "order", "shortest_prompt"), std::nullopt);
  EXPECT_EQ(policy.order, Order::kShortestPrompt);
}

TEST(Policy, MistakesAreNamedAndChangeNothing) {
  Policy policy;
  EXPECT_EQ(set_switch(policy, "layout", "square"),
            "layout cannot be 'square'; it is one of padded, packed");
  EXPECT_EQ(set_switch(policy, "tbt-target", "ms"),
            "tbt-target takes a number of milliseconds, such as 25ms or 0.5s, not 'ms'");
  EXPECT_EQ(set_switch(policy, "max-chunk", "12ms"),
            "max-chunk takes a number of tokens, not '12ms'");
  EXPECT_EQ(set_switch(policy, "max-chunk", "12x"),
            "max-chunk takes a number of tokens, not '12x'");
  EXPECT_EQ(set_switch(policy, "max-chunk", ""), "max-chunk takes a number of tokens, not ''");
  EXPECT_EQ(set_switch(policy, "colour", "red"),
            "there is no switch 'colour'; there are admission, delivery, batch-window, batch-size, "
            "layout, phases, max-chunk, tbt-target, kv, preemption, victim, order, max-wait, "
            "prefix-cache");
  EXPECT_EQ(set_switch(policy, "batch window", "soon"),
            "batch-window takes a number of milliseconds, such as 25ms or 0.5s, not 'soon'");
  EXPECT_EQ(switch_value(policy, "colour"), std::nullopt);
  EXPECT_EQ(policy, Policy{});
}

}  // namespace
}  // namespace hearth
