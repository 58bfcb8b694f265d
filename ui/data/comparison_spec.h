// What `--compare` takes: two policies, or two values of a switch, and the words for both. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/policy.h"
#include "runtime/result.h"

namespace hearth {

struct ComparedPolicy {
  std::string label;  // as it was written: "static", "kv=reserve"
  Policy policy;
};
using PolicyPair = std::array<ComparedPolicy, 2>;

// "static", "continuous+preemption=swap" or "kv=reserve", which is the policy continuous with this
// switch.
Result<ComparedPolicy> parse_compared_policy(std::string_view text);
// Two of them with a comma between: "static,continuous". The error is one line.
Result<PolicyPair> parse_comparison(std::string_view text);

// What a list to choose from offers: the named policies, then every value of every switch.
std::vector<std::string> comparison_choices();

// The comparison that suits an engine with this policy: it against continuous, or static against
// continuous if that is what it has.
PolicyPair comparison_for(const Policy& current);

}  // namespace hearth
