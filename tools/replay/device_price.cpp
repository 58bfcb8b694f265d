#include "tools/replay/device_price.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"
#include "tools/replay/parse_number.h"

namespace hearth {

Result<double> parse_price_per_hour(std::string_view text) {
  std::string_view number = text;
  for (const std::string_view unit : {"/hour", "/h"})
    if (number.ends_with(unit)) {
      number.remove_suffix(unit.size());
      break;
    }
  const std::optional<double> price = parse_number<double>(number);
  if (!price || !std::isfinite(*price) || *price <= 0)
    return invalid(fmt::format("{} is not a price per hour such as 2.5/h", in_quotes(text)));
  return *price;
}

double cost_per_million_tokens(double price_per_hour, double seconds, uint64_t generated_tokens) {
  constexpr double kSecondsPerHour = 3600, kMillion = 1e6;
  return price_per_hour * (seconds / kSecondsPerHour) * kMillion /
         static_cast<double>(generated_tokens);
}

}  // namespace hearth
