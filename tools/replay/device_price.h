// What a device costs, and what its tokens cost then. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Parses "2.5/h" or "2.5": money per hour of the device, in any currency.
Result<double> parse_price_per_hour(std::string_view text);

// Money per million generated tokens. The device is paid for all of `seconds`, also while it is
// idle. REQUIRES: there are tokens.
double cost_per_million_tokens(double price_per_hour, double seconds, uint64_t generated_tokens);

}  // namespace hearth
