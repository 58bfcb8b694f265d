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
  expect("static",
         "admission=request layout=padded phases=separate kv=reserve preemption=recompute "
         "order=fcfs prefix-cache=off max-chunk=0");
  expect("iteration",
         "admission=iteration layout=padded phases=separate kv=reserve preemption=recompute "
         "order=fcfs prefix-cache=off max-chunk=0");
  expect("packed",
         "admission=request layout=packed phases=mixed kv=reserve preemption=recompute "
         "order=fcfs prefix-cache=off max-chunk=0");
  expect("continuous",
         "admission=iteration layout=packed phases=mixed kv=on-demand preemption=recompute "
         "order=fcfs prefix-cache=on max-chunk=0");
  EXPECT_EQ(policy_names().size(), 4u);
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
  EXPECT_EQ(policy_name(policy), "custom");
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
  EXPECT_EQ(set_switch(policy, "max-chunk", "12x"),
            "max-chunk takes a number of tokens, not '12x'");
  EXPECT_EQ(set_switch(policy, "max-chunk", ""), "max-chunk takes a number of tokens, not ''");
  EXPECT_EQ(set_switch(policy, "colour", "red"),
            "there is no switch 'colour'; there are admission, layout, phases, kv, preemption, "
            "order, prefix-cache, max-chunk");
  EXPECT_EQ(switch_value(policy, "colour"), std::nullopt);
  EXPECT_EQ(policy, Policy{});
}

}  // namespace
}  // namespace hearth
