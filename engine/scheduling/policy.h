// Scheduling schemes are data: every one is a combination of these switches on one scheduler, and
// may be changed while requests run. What each means, and what happens to running requests when it
// is changed: README.md. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

enum class Admission : std::uint8_t { kRequest, kIteration };
enum class Layout : std::uint8_t { kPadded, kPacked };
enum class Phases : std::uint8_t { kMixed, kSeparate };
enum class KvAllocation : std::uint8_t { kReserve, kOnDemand };
enum class Preemption : std::uint8_t { kRecompute, kSwap };
enum class Order : std::uint8_t { kFcfs, kPriority, kShortestPrompt };

struct Policy {
  Admission admission = Admission::kIteration;
  Layout layout = Layout::kPacked;
  Phases phases = Phases::kMixed;
  KvAllocation kv = KvAllocation::kOnDemand;
  Preemption preemption = Preemption::kRecompute;
  Order order = Order::kFcfs;
  bool prefix_cache = true;
  std::uint32_t max_chunk_tokens = 0;  // of one prompt in a step; 0: as many as the step takes

  bool operator==(const Policy&) const = default;
};

// "static", "iteration", "packed", "continuous".
std::span<const std::string_view> policy_names();
std::optional<Policy> named_policy(std::string_view name);
// The name of exactly this combination, or "custom".
std::string_view policy_name(const Policy& policy);

// A switch as command lines and the dashboard spell it; only "kv" is --kv-allocation on the former.
struct PolicySwitch {
  std::string_view name;                     // "admission", ..., "prefix-cache", "max-chunk"
  std::span<const std::string_view> values;  // empty: a number
  std::string_view meaning;                  // one line, for help texts
};
std::span<const PolicySwitch> policy_switches();

// Sets the switch, or says what is wrong and leaves the policy as it is. A name may be spelt with
// '-', '_' or ' '.
std::optional<std::string> set_switch(Policy& policy, std::string_view name,
                                      std::string_view value);
// The switch's value as set_switch() takes it; nothing if there is no such switch.
std::optional<std::string> switch_value(const Policy& policy, std::string_view name);
// Every switch as "name=value", separated by spaces.
std::string describe(const Policy& policy);

}  // namespace hearth
