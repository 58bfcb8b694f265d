#include "tools/commands/policy_options.h"

#include <fmt/format.h>

namespace hearth {
namespace {

std::string option_name(std::string_view switch_name) {
  return switch_name == "kv" ? "kv-allocation" : std::string(switch_name);
}

std::vector<std::string> to_strings(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

// For Option::check(): what the switch itself says about a value, without its name, which the
// option's message begins with.
Option::Check value_check(std::string_view switch_name) {
  return [switch_name](const std::string& value) {
    Policy scratch;
    std::string wrong = set_switch(scratch, switch_name, value).value_or("");
    const std::string name = std::string(switch_name) + " ";
    return wrong.starts_with(name) ? wrong.substr(name.size()) : wrong;
  };
}

// Those that the short help shows, where it shows any.
bool is_common(std::string_view switch_name) {
  return switch_name == "tbt-target" || switch_name == "max-wait";
}

}  // namespace

std::vector<std::string> named_policies() { return to_strings(policy_names()); }

void PolicySwitchOptions::declare(Options& options, bool shows_common) {
  for (const PolicySwitch& entry : policy_switches()) switches_.push_back({entry.name, {}});
  for (size_t i = 0; i < switches_.size(); ++i) {
    const PolicySwitch& entry = policy_switches()[i];
    const char* value = !entry.values.empty()            ? "WORD"
                        : entry.counts == "milliseconds" ? "MS"
                                                         : "N";
    Option& option = options.add(fmt::format("--{} {}", option_name(entry.name), value),
                                 &switches_[i].value, std::string(entry.meaning));
    if (entry.values.empty())
      option.check(value_check(entry.name));
    else
      option.one_of(to_strings(entry.values));
    if (!shows_common || !is_common(entry.name)) option.advanced();
  }
}

Result<Policy> PolicySwitchOptions::apply(
    Policy policy, std::string& label,
    const std::function<bool(std::string_view name)>& skips) const {
  for (const Switch& option : switches_) {
    if (option.value.empty() || (skips && skips(option.name))) continue;
    const Policy before = policy;
    if (const auto wrong = set_switch(policy, option.name, option.value))
      return Error{ErrorKind::kInvalid, *wrong};
    if (policy != before) label += fmt::format(" {}={}", option_name(option.name), option.value);
  }
  return policy;
}

}  // namespace hearth
