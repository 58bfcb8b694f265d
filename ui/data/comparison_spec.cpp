#include "ui/data/comparison_spec.h"

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"
#include "tools/replay/policy_spec.h"

namespace hearth {
namespace {

constexpr std::string_view kComparedBase = "continuous";

// "kv=reserve": a switch without the name of a policy before it.
bool begins_with_switch(std::string_view text) { return text.find('=') < text.find('+'); }

}  // namespace

Result<ComparedPolicy> parse_compared_policy(std::string_view text) {
  const std::string written(text);
  HEARTH_ASSIGN(
      const PolicySpec spec,
      parse_policy_spec(begins_with_switch(text) ? fmt::format("{}+{}", kComparedBase, text)
                                                 : written));
  return ComparedPolicy{.label = written, .policy = spec.apply(spec.base)};
}

Result<PolicyPair> parse_comparison(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.find(',', comma + 1) != std::string_view::npos)
    return invalid(fmt::format(
        "{} is not two policies with a comma between, such as static,continuous", in_quotes(text)));
  HEARTH_ASSIGN(ComparedPolicy first, parse_compared_policy(text.substr(0, comma)));
  HEARTH_ASSIGN(ComparedPolicy second, parse_compared_policy(text.substr(comma + 1)));
  return PolicyPair{std::move(first), std::move(second)};
}

std::vector<std::string> comparison_choices() {
  std::vector<std::string> choices(policy_names().begin(), policy_names().end());
  for (const PolicySwitch& entry : policy_switches())
    for (const std::string_view value : entry.values)
      choices.push_back(fmt::format("{}={}", entry.name, value));
  return choices;
}

PolicyPair comparison_for(const Policy& current) {
  const Policy continuous = *named_policy(kComparedBase);
  const ComparedPolicy second{.label = std::string(kComparedBase), .policy = continuous};
  if (current == continuous)
    return {ComparedPolicy{.label = "static", .policy = *named_policy("static")}, second};
  ComparedPolicy first{.label = std::string(policy_name(current)), .policy = current};
  if (!named_policy(first.label)) {
    // A combination without a name is spelt as what it changes.
    first.label.clear();
    for (const PolicySwitch& entry : policy_switches()) {
      const std::string value = *switch_value(current, entry.name);
      if (value == *switch_value(continuous, entry.name)) continue;
      first.label += fmt::format("{}{}={}", first.label.empty() ? "" : "+", entry.name, value);
    }
  }
  return {first, second};
}

}  // namespace hearth
