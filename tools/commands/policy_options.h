// The switches of a scheduling policy as options.
#pragma once

#include <functional>
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
  // --admission, --layout and so on. The switch `kv` is --kv-allocation, because --kv is the format
  // of the KV cache. `shows_common`: the short help has those that most servers are tuned with.
  void declare(Options& options, bool shows_common = false);

  // The policy, changed by the switches that were given; `label` gets the ones that made a
  // difference. Switches for which `skips` is true are left as they are.
  Result<Policy> apply(Policy policy, std::string& label,
                       const std::function<bool(std::string_view name)>& skips = {}) const;

 private:
  struct Switch {
    std::string_view name;
    std::string value;  // empty: not given
  };
  std::vector<Switch> switches_;
};

}  // namespace hearth
