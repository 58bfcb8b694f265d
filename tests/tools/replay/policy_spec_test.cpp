// Policies as users write them, and what they are told about mistakes.
#include "tools/replay/policy_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const Result<PolicySpec> spec = parse_policy_spec(text);
  return spec.ok() ? std::string() : spec.error().message;
}

TEST(PolicySpec, EveryNameIsAPolicy) {
  for (const std::string_view name : policy_names()) {
    const Result<PolicySpec> spec = parse_policy_spec(name);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_EQ(spec->text, name);
    EXPECT_EQ(spec->apply(spec->base), *named_policy(name));
  }
}

TEST(PolicySpec, EveryValueOfEverySwitchCanBeSet) {
  for (const PolicySwitch& entry : policy_switches())
    for (const std::string_view value : entry.values) {
      const std::string text = "static+" + std::string(entry.name) + "=" + std::string(value);
      const Result<PolicySpec> spec = parse_policy_spec(text);
      ASSERT_TRUE(spec.ok()) << spec.error().message;
      EXPECT_EQ(spec->text, text);
      EXPECT_TRUE(spec->sets(entry.name));
      EXPECT_EQ(switch_value(spec->apply(spec->base), entry.name), value) << text;
    }
}

TEST(PolicySpec, SwitchesAreSetInOrderOverWhateverPolicyIsGiven) {
  const Result<PolicySpec> spec =
      parse_policy_spec("continuous+kv=reserve+max-chunk=32+prefix_cache=off+kv=on-demand");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  Policy other = *named_policy("static");
  other.order = Order::kPriority;
  const Policy policy = spec->apply(other);
  EXPECT_EQ(policy.kv, KvAllocation::kOnDemand);
  EXPECT_EQ(policy.max_chunk_tokens, 32u);
  EXPECT_FALSE(policy.prefix_cache);
  EXPECT_EQ(policy.order, Order::kPriority);
  EXPECT_EQ(policy.layout, other.layout);
  EXPECT_TRUE(spec->sets("prefix-cache"));
  EXPECT_FALSE(spec->sets("order"));
}

TEST(PolicySpec, KvAllocationIsTheCommandLinesNameOfKv) {
  const Result<PolicySpec> spec = parse_policy_spec("continuous+kv-allocation=reserve");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->apply(spec->base).kv, KvAllocation::kReserve);
}

TEST(PolicySpec, MistakesAreExplained) {
  EXPECT_THAT(error_of("contineous"), HasSubstr("did you mean continuous?"));
  EXPECT_THAT(error_of("contineous+kv=reserve"), HasSubstr("did you mean continuous?"));
  for (const std::string_view name : policy_names())
    EXPECT_THAT(error_of("xyzzy"), HasSubstr(std::string(name)));
  EXPECT_THAT(error_of(""), HasSubstr("begins with its name"));
  EXPECT_THAT(error_of("+kv=reserve"), HasSubstr("begins with its name"));
  for (const PolicySwitch& entry : policy_switches())
    EXPECT_THAT(error_of("continuous+magic=on"), HasSubstr(std::string(entry.name)));
  EXPECT_THAT(error_of("continuous+preemption=magic"), HasSubstr("recompute, swap"));
  EXPECT_THAT(error_of("continuous+preemption="), HasSubstr("recompute, swap"));
  EXPECT_THAT(error_of("continuous+max-chunk=few"), HasSubstr("few"));
  EXPECT_THAT(error_of("continuous+swap"), HasSubstr("did you mean preemption=swap?"));
  EXPECT_THAT(error_of("continuous+"), HasSubstr("such as preemption=swap"));
  EXPECT_THAT(error_of("continuous+kv=reserve+"), HasSubstr("such as preemption=swap"));
  for (const char* wrong : {"contineous", "continuous+magic=on", "continuous+preemption=magic"})
    EXPECT_EQ(error_of(wrong).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
