#include "engine/scheduling/policy.h"

#include <array>
#include <charconv>

namespace hearth {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 4> kPolicyNames{"static", "iteration", "packed",
                                                       "continuous"};

// In the order of the enums' values.
constexpr std::array<std::string_view, 2> kAdmission{"request", "iteration"};
constexpr std::array<std::string_view, 2> kLayout{"padded", "packed"};
constexpr std::array<std::string_view, 2> kPhases{"mixed", "separate"};
constexpr std::array<std::string_view, 2> kKv{"reserve", "on-demand"};
constexpr std::array<std::string_view, 2> kPreemption{"recompute", "swap"};
constexpr std::array<std::string_view, 3> kOrder{"fcfs", "priority", "shortest-prompt"};
constexpr std::array<std::string_view, 2> kOffOn{"off", "on"};

constexpr std::array<PolicySwitch, 8> kSwitches{{
    {"admission", kAdmission,
     "Run a batch until its last request ends, or let requests join and leave at every step"},
    {"layout", kLayout, "Pad every sequence to the longest, or pack them without padding"},
    {"phases", kPhases, "Mix prompt chunks and decodes in a step, or give each steps of its own"},
    {"kv", kKv, "Reserve KV blocks for the longest possible sequence, or allocate them as needed"},
    {"preemption", kPreemption,
     "Recompute a preempted request later, or swap it to host memory and back"},
    {"order", kOrder, "Which waiting request is admitted next"},
    {"prefix-cache", kOffOn, "Share the KV blocks of equal prefixes"},
    {"max-chunk", {}, "Maximum tokens of one prompt per step; 0 fills the step"},
}};

std::string normalized(std::string_view name) {
  std::string result(name);
  for (char& c : result)
    if (c == '_' || c == ' ') c = '-';
  return result;
}

// The value's index among the names, or nothing.
std::optional<std::size_t> index_of(Names names, std::string_view value) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == value) return i;
  return std::nullopt;
}

std::string list(Names names) {
  std::string result;
  for (std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}

const PolicySwitch* find_switch(std::string_view name) {
  for (const PolicySwitch& entry : kSwitches)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace

std::span<const std::string_view> policy_names() { return kPolicyNames; }

std::optional<Policy> named_policy(std::string_view name) {
  if (name == "continuous") return Policy{};
  Policy policy{.kv = KvAllocation::kReserve, .prefix_cache = false};
  if (name == "static") {
    policy.admission = Admission::kRequest;
    policy.layout = Layout::kPadded;
    policy.phases = Phases::kSeparate;
  } else if (name == "iteration") {
    policy.layout = Layout::kPadded;
    policy.phases = Phases::kSeparate;
  } else if (name == "packed") {
    policy.admission = Admission::kRequest;
  } else {
    return std::nullopt;
  }
  return policy;
}

std::string_view policy_name(const Policy& policy) {
  for (std::string_view name : kPolicyNames)
    if (named_policy(name) == policy) return name;
  return "custom";
}

std::span<const PolicySwitch> policy_switches() { return kSwitches; }

std::optional<std::string> set_switch(Policy& policy, std::string_view name,
                                      std::string_view value) {
  const std::string key = normalized(name);
  const PolicySwitch* entry = find_switch(key);
  if (entry == nullptr) {
    std::string known;
    for (const PolicySwitch& other : kSwitches) {
      if (!known.empty()) known += ", ";
      known += other.name;
    }
    return "there is no switch '" + std::string(name) + "'; there are " + known;
  }
  if (entry->values.empty()) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || error != std::errc{} || end != value.data() + value.size())
      return key + " takes a number of tokens, not '" + std::string(value) + "'";
    policy.max_chunk_tokens = number;
    return std::nullopt;
  }
  const std::optional<std::size_t> index = index_of(entry->values, normalized(value));
  if (!index)
    return key + " cannot be '" + std::string(value) + "'; it is one of " + list(entry->values);
  if (key == "admission") policy.admission = static_cast<Admission>(*index);
  if (key == "layout") policy.layout = static_cast<Layout>(*index);
  if (key == "phases") policy.phases = static_cast<Phases>(*index);
  if (key == "kv") policy.kv = static_cast<KvAllocation>(*index);
  if (key == "preemption") policy.preemption = static_cast<Preemption>(*index);
  if (key == "order") policy.order = static_cast<Order>(*index);
  if (key == "prefix-cache") policy.prefix_cache = *index == 1;
  return std::nullopt;
}

std::optional<std::string> switch_value(const Policy& policy, std::string_view name) {
  const std::string key = normalized(name);
  const auto text = [](Names names, auto value) {
    return std::string(names[static_cast<std::size_t>(value)]);
  };
  if (key == "admission") return text(kAdmission, policy.admission);
  if (key == "layout") return text(kLayout, policy.layout);
  if (key == "phases") return text(kPhases, policy.phases);
  if (key == "kv") return text(kKv, policy.kv);
  if (key == "preemption") return text(kPreemption, policy.preemption);
  if (key == "order") return text(kOrder, policy.order);
  if (key == "prefix-cache") return text(kOffOn, policy.prefix_cache);
  if (key == "max-chunk") return std::to_string(policy.max_chunk_tokens);
  return std::nullopt;
}

std::string describe(const Policy& policy) {
  std::string result;
  for (const PolicySwitch& entry : kSwitches) {
    if (!result.empty()) result += ' ';
    result += entry.name;
    result += '=';
    result += *switch_value(policy, entry.name);
  }
  return result;
}

}  // namespace hearth
