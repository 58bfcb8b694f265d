// A policy as users write it: a name and the switches to change, "continuous+preemption=swap". The
// names, switches and values are those of engine/scheduling/policy.h. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/policy.h"
#include "runtime/result.h"

namespace hearth {

struct PolicySpec {
  struct Switch {
    std::string name, value;
  };

  std::string text;              // as it was written, for reports
  Policy base;                   // the named policy
  std::vector<Switch> switches;  // to set on it, in order

  // Whether it sets the switch of that name, as policy_switches() spells it.
  bool sets(std::string_view name) const;
  // Sets the switches on `policy`. REQUIRES: parse_policy_spec() made this.
  Policy apply(Policy policy) const;
};

// Parses "name" or "name+switch=value+switch=value...". The error is one line: an unknown name
// comes with the nearest one, an unknown switch with the list of switches, a bad value with the
// values.
Result<PolicySpec> parse_policy_spec(std::string_view text);

}  // namespace hearth
