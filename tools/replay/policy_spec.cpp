#include "tools/replay/policy_spec.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

Error unknown_policy(std::string_view name) {
  const std::vector<std::string> names(policy_names().begin(), policy_names().end());
  if (name.empty())
    return invalid(fmt::format("a policy begins with its name: {}", joined_with_or(names)));
  const std::vector<std::string> near = near_words(name, names);
  return invalid(fmt::format(
      "unknown policy {}{}", in_quotes(name),
      near.empty() ? fmt::format("; use {}", joined_with_or(names)) : did_you_mean(near)));
}

// For "swap" instead of "preemption=swap": suggests the switches that have such a value.
Error not_a_switch(std::string_view word) {
  std::vector<std::string> meant;
  for (const PolicySwitch& entry : policy_switches())
    if (std::ranges::find(entry.values, word) != entry.values.end())
      meant.push_back(fmt::format("{}={}", entry.name, word));
  return invalid(fmt::format("{} is not a switch and its value, such as preemption=swap{}",
                             in_quotes(word), did_you_mean(meant)));
}

// As policy_switches() spells it. "kv-allocation" is the command line's name of "kv", because --kv
// is the format of the KV cache there.
std::string spelt_switch(std::string_view written) {
  std::string name(written);
  std::ranges::replace(name, '_', '-');
  return name == "kv-allocation" ? "kv" : name;
}

}  // namespace

bool PolicySpec::sets(std::string_view name) const {
  return std::ranges::find(switches, name, &Switch::name) != switches.end();
}

Policy PolicySpec::apply(Policy policy) const {
  for (const Switch& change : switches) set_switch(policy, change.name, change.value);
  return policy;
}

Result<PolicySpec> parse_policy_spec(std::string_view text) {
  PolicySpec spec{.text = std::string(text), .base = {}, .switches = {}};
  size_t plus = std::min(text.find('+'), text.size());
  const std::optional<Policy> named = named_policy(text.substr(0, plus));
  if (!named) return unknown_policy(text.substr(0, plus));
  spec.base = *named;
  Policy changed = spec.base;
  while (plus < text.size()) {
    text.remove_prefix(plus + 1);
    plus = std::min(text.find('+'), text.size());
    const std::string_view word = text.substr(0, plus);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) return not_a_switch(word);
    const std::string name = spelt_switch(word.substr(0, equals));
    const std::string value(word.substr(equals + 1));
    if (const auto wrong = set_switch(changed, name, value)) return invalid(*wrong);
    spec.switches.push_back({.name = name, .value = value});
  }
  return spec;
}

}  // namespace hearth
