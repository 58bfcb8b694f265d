#include "engine/scheduling/policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace hearth {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 6> kPolicyNames{"no-cache",  "static", "dynamic",
                                                       "iteration", "packed", "continuous"};
// How long the `dynamic` policy waits for its batch to fill.
constexpr std::uint32_t kDynamicWindowMs = 50;

// In the order of the enums' values.
constexpr std::array<std::string_view, 2> kAdmission{"request", "iteration"};
constexpr std::array<std::string_view, 2> kDelivery{"with-batch", "at-once"};
constexpr std::array<std::string_view, 2> kLayout{"padded", "packed"};
constexpr std::array<std::string_view, 2> kPhases{"mixed", "separate"};
constexpr std::array<std::string_view, 3> kKv{"none", "reserve", "on-demand"};
constexpr std::array<std::string_view, 2> kPreemption{"recompute", "swap"};
constexpr std::array<std::string_view, 3> kVictim{"youngest", "least-recent", "largest"};
constexpr std::array<std::string_view, 3> kOrder{"fcfs", "priority", "shortest-prompt"};
constexpr std::array<std::string_view, 2> kOffOn{"off", "on"};
constexpr std::string_view kMilliseconds = "milliseconds";

// A switch, and the member of Policy that it sets: an enum by the index of its name, or a number.
struct Row {
  PolicySwitch shown;
  std::uint32_t (*get)(const Policy&);
  void (*set)(Policy&, std::uint32_t);
};

template <auto Member>
std::uint32_t get_member(const Policy& policy) {
  return static_cast<std::uint32_t>(policy.*Member);
}
template <auto Member>
void set_member(Policy& policy, std::uint32_t value) {
  using Type = std::remove_reference_t<decltype(policy.*Member)>;
  policy.*Member = static_cast<Type>(value);
}
template <auto Member>
constexpr Row row(std::string_view name, Names values, std::string_view meaning,
                  std::string_view counts = {}) {
  return {{name, values, meaning, counts}, get_member<Member>, set_member<Member>};
}

constexpr std::array kRows{
    row<&Policy::admission>(
        "admission", kAdmission,
        "Run a batch until its last request ends, or let requests join and leave at every step"),
    row<&Policy::delivery>(
        "delivery", kDelivery,
        "With request admission: deliver results when the whole batch has ended, or at once"),
    row<&Policy::batch_window_ms>(
        "batch-window", {},
        "With request admission: milliseconds to wait for a batch to fill; 0 starts at once",
        kMilliseconds),
    row<&Policy::batch_size>("batch-size", {},
                             "With request admission: the most requests in a batch; a full batch "
                             "starts without waiting. 0 is as many as may run",
                             "requests"),
    row<&Policy::layout>("layout", kLayout,
                         "Pad every sequence to the longest, or pack them without padding"),
    row<&Policy::phases>("phases", kPhases,
                         "Mix prompt chunks and decodes in a step, or run them in separate steps"),
    row<&Policy::max_chunk_tokens>(
        "max-chunk", {}, "The most tokens of one prompt per step; 0 fills the step", "tokens"),
    row<&Policy::tbt_target_ms>("tbt-target", {},
                                "Target for the time between two tokens of a request, as in 25ms; "
                                "steps get fewer prompt tokens to meet it. 0: 50 ms, or no target "
                                "if --max-step-tokens is given",
                                kMilliseconds),
    row<&Policy::kv>("kv", kKv,
                     "Cache nothing and recompute each sequence at every step, reserve KV blocks "
                     "for the longest possible sequence, or allocate them as needed"),
    row<&Policy::preemption>(
        "preemption", kPreemption,
        "Recompute a preempted request later, or swap it to host memory and back"),
    row<&Policy::victim>("victim", kVictim, "Which running request is preempted first"),
    row<&Policy::order>("order", kOrder, "Which waiting request is admitted next"),
    row<&Policy::max_wait_ms>("max-wait", {},
                              "Refuse a request that would wait longer than this in the queue, as "
                              "in 500ms; 0 refuses none before the queue is full",
                              kMilliseconds),
    row<&Policy::prefix_cache>("prefix-cache", kOffOn, "Share the KV blocks of equal prefixes"),
};

constexpr auto kSwitches = [] {
  std::array<PolicySwitch, kRows.size()> switches;
  for (std::size_t i = 0; i < kRows.size(); ++i) switches[i] = kRows[i].shown;
  return switches;
}();

std::string normalized(std::string_view name) {
  std::string result(name);
  for (char& c : result)
    if (c == '_' || c == ' ') c = '-';
  return result;
}

std::string list(Names names) {
  std::string result;
  for (std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}

std::optional<std::uint32_t> read_count(std::string_view text) {
  std::uint32_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (text.empty() || error != std::errc{} || end != last) return std::nullopt;
  return number;
}

// "25", "25ms", "0.025s". Parts of a millisecond are refused.
std::optional<std::uint32_t> read_milliseconds(std::string_view text) {
  if (text.ends_with("ms")) text.remove_suffix(2);
  if (!text.ends_with('s')) return read_count(text);
  text.remove_suffix(1);
  double seconds = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, seconds, std::chars_format::fixed);
  constexpr double kMost = 4'000'000;  // fits 32 bits in milliseconds
  if (text.empty() || error != std::errc{} || end != last || !(seconds >= 0 && seconds <= kMost))
    return std::nullopt;
  const double milliseconds = std::round(seconds * 1000);
  if (std::abs(seconds * 1000 - milliseconds) > 1e-6) return std::nullopt;
  return static_cast<std::uint32_t>(milliseconds);
}

const Row* find_row(std::string_view name) {
  const std::string key = normalized(name);
  for (const Row& entry : kRows)
    if (entry.shown.name == key) return &entry;
  return nullptr;
}

}  // namespace

std::span<const std::string_view> policy_names() { return kPolicyNames; }

std::optional<Policy> named_policy(std::string_view name) {
  if (name == "continuous") return Policy{};
  if (name == "no-cache") return Policy{.kv = KvAllocation::kNone, .prefix_cache = false};
  Policy policy{.kv = KvAllocation::kReserve, .prefix_cache = false};
  if (name == "static" || name == "dynamic") {
    policy.admission = Admission::kRequest;
    policy.delivery = Delivery::kWithBatch;
    policy.layout = Layout::kPadded;
    policy.phases = Phases::kSeparate;
    if (name == "dynamic") policy.batch_window_ms = kDynamicWindowMs;
  } else if (name == "iteration") {
    policy.layout = Layout::kPadded;
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
  const Row* entry = find_row(name);
  if (entry == nullptr) {
    std::array<std::string_view, kRows.size()> known;
    std::ranges::transform(kRows, known.begin(), [](const Row& row) { return row.shown.name; });
    return "there is no switch '" + std::string(name) + "'; there are " + list(known);
  }
  const std::string key(entry->shown.name);
  const Names values = entry->shown.values;
  if (values.empty()) {
    const bool is_time = entry->shown.counts == kMilliseconds;
    const auto number = is_time ? read_milliseconds(value) : read_count(value);
    if (!number)
      return key + " takes a number of " + std::string(entry->shown.counts) +
             (is_time ? ", such as 25ms or 0.5s" : "") + ", not '" + std::string(value) + "'";
    entry->set(policy, *number);
    return std::nullopt;
  }
  const auto found = std::ranges::find(values, normalized(value));
  if (found == values.end())
    return key + " cannot be '" + std::string(value) + "'; it is one of " + list(values);
  entry->set(policy, static_cast<std::uint32_t>(found - values.begin()));
  return std::nullopt;
}

std::optional<std::string> switch_value(const Policy& policy, std::string_view name) {
  const Row* entry = find_row(name);
  if (entry == nullptr) return std::nullopt;
  const std::uint32_t value = entry->get(policy);
  const Names values = entry->shown.values;
  return values.empty() ? std::to_string(value) : std::string(values[value]);
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
