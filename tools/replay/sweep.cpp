#include "tools/replay/sweep.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "tools/replay/parse_number.h"

namespace hearth {
namespace {

constexpr std::string_view kEllipsis = "...", kRange = "..";
constexpr size_t kMostPoints = 64;

struct SweptParameter {
  std::string_view name;
  uint32_t largest = 0;  // as the option of that name allows
};
// In the order of SweptLimit's values.
constexpr std::array<SweptParameter, 2> kSweptParameters{
    {{"max-seqs", 4096}, {"max-step-tokens", 1u << 20}}};

Error unknown_parameter(std::string_view name) {
  std::vector<std::string> names;
  for (const SweptParameter& parameter : kSweptParameters) names.emplace_back(parameter.name);
  const std::vector<std::string> near = near_words(name, names);
  return invalid(fmt::format("{} cannot be swept; {} can, as in max-seqs=1,2,4,8{}",
                             in_quotes(name), fmt::format("{} and {}", names[0], names[1]),
                             did_you_mean(near)));
}

// Doublings of `first` that are less than `last`, and `last`.
void append_doublings(uint32_t first, uint32_t last, std::vector<uint32_t>& values) {
  for (uint64_t value = first; value < last; value *= 2)
    values.push_back(static_cast<uint32_t>(value));
  values.push_back(last);
}

class SweptValues {
 public:
  explicit SweptValues(const SweptParameter& parameter) : parameter_(parameter) {}

  Result<std::vector<uint32_t>> parse(std::string_view text) {
    while (true) {
      const size_t comma = std::min(text.find(','), text.size());
      HEARTH_TRY(take(text.substr(0, comma)));
      if (comma == text.size()) break;
      text.remove_prefix(comma + 1);
    }
    if (doubling_) return invalid("'...' stands between two values, as in 1,2,4,...,64");
    std::ranges::sort(values_);
    values_.erase(std::ranges::unique(values_).begin(), values_.end());
    if (values_.size() > kMostPoints)
      return invalid(fmt::format("{} values are too many: at most {} can be swept", values_.size(),
                                 kMostPoints));
    return std::move(values_);
  }

 private:
  Status take(std::string_view word) {
    if (word == kEllipsis) {
      if (doubling_ || values_.empty())
        return invalid("'...' stands between two values, as in 1,2,4,...,64");
      doubling_ = true;
      return {};
    }
    const size_t dots = word.find(kRange);
    if (dots != std::string_view::npos) {
      HEARTH_ASSIGN(const uint32_t first, number(word.substr(0, dots)));
      HEARTH_ASSIGN(const uint32_t last, number(word.substr(dots + kRange.size())));
      return append(first, last);
    }
    HEARTH_ASSIGN(const uint32_t value, number(word));
    if (doubling_) return append(values_.back(), value);
    values_.push_back(value);
    return {};
  }

  Status append(uint32_t first, uint32_t last) {
    if (first > last)
      return invalid(fmt::format("{} to {} goes down; write the smaller value first", first, last));
    append_doublings(first, last, values_);
    doubling_ = false;
    return {};
  }

  Result<uint32_t> number(std::string_view word) const {
    const std::optional<uint32_t> value = parse_number<uint32_t>(word);
    if (!value || *value < 1 || *value > parameter_.largest)
      return invalid(fmt::format("{} takes whole numbers from 1 to {}, not {}", parameter_.name,
                                 parameter_.largest, in_quotes(word)));
    return *value;
  }

  const SweptParameter& parameter_;
  std::vector<uint32_t> values_;
  bool doubling_ = false;  // after "..."
};

}  // namespace

std::string_view Sweep::parameter() const {
  return kSweptParameters[static_cast<size_t>(limit)].name;
}

uint32_t Sweep::value_in(const SchedulerLimits& limits) const {
  return limit == SweptLimit::kMaxSequences ? limits.max_sequences : limits.max_step_tokens;
}

SchedulerLimits Sweep::at(uint32_t value, SchedulerLimits limits) const {
  (limit == SweptLimit::kMaxSequences ? limits.max_sequences : limits.max_step_tokens) = value;
  return limits;
}

Result<Sweep> parse_sweep(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const auto* const parameter = std::ranges::find(kSweptParameters, name, &SweptParameter::name);
  if (parameter == kSweptParameters.end()) return unknown_parameter(name);
  if (equals == text.size())
    return invalid(fmt::format("{0} needs values, as in {0}=1,2,4,8", name));
  HEARTH_ASSIGN(std::vector<uint32_t> values,
                SweptValues(*parameter).parse(text.substr(equals + 1)));
  return Sweep{.limit = static_cast<SweptLimit>(parameter - kSweptParameters.begin()),
               .values = std::move(values)};
}

}  // namespace hearth
