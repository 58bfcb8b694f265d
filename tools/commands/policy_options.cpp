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

}  // namespace

std::vector<std::string> named_policies() { return to_strings(policy_names()); }

void PolicySwitchOptions::declare(CLI::App& app) {
  for (const PolicySwitch& entry : policy_switches()) switches_.push_back({entry.name, {}});
  for (size_t i = 0; i < switches_.size(); ++i) {
    const PolicySwitch& entry = policy_switches()[i];
    auto* option = app.add_option("--" + option_name(entry.name), switches_[i].value,
                                  std::string(entry.meaning));
    if (entry.values.empty())
      option->check(CLI::TypeValidator<uint32_t>("TOKENS"));
    else
      option->check(CLI::IsMember(to_strings(entry.values)));
  }
}

Result<Policy> PolicySwitchOptions::apply(Policy policy, std::string& label) const {
  for (const Switch& option : switches_) {
    if (option.value.empty()) continue;
    const Policy before = policy;
    if (const auto wrong = set_switch(policy, option.name, option.value))
      return Error{ErrorKind::kInvalid, *wrong};
    if (policy != before) label += fmt::format(" {}={}", option_name(option.name), option.value);
  }
  return policy;
}

}  // namespace hearth
