// The switches of a scheduling policy as options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/policy.h"
#include "runtime/result.h"
#include "tools/options/options.h"

namespace hearth {

// For Option::one_of().
std::vector<std::string> named_policies();

class PolicySwitchOptions {
 public:
  // --admission, --layout and so on; --kv-allocation for `kv`, as --kv is the format of the cache.
  void declare(Options& options);

  // The policy with the switches that were given on top. Those that change it are added to `label`.
  Result<Policy> apply(Policy policy, std::string& label) const;

 private:
  struct Switch {
    std::string_view name;
    std::string value;  // empty: as the policy has it
  };
  std::vector<Switch> switches_;
};

}  // namespace hearth
