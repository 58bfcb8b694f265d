// Scheduling policies are data: each is a combination of these switches on one scheduler, and can
// be changed while requests run. README.md says what each switch means and what a change does to
// running requests. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

enum class Admission : std::uint8_t { kRequest, kIteration };
enum class Delivery : std::uint8_t { kWithBatch, kAtOnce };
enum class Layout : std::uint8_t { kPadded, kPacked };
enum class Phases : std::uint8_t { kMixed, kSeparate };
enum class KvAllocation : std::uint8_t { kNone, kReserve, kOnDemand };
enum class Preemption : std::uint8_t { kRecompute, kSwap };
enum class Victim : std::uint8_t { kYoungest, kLeastRecent, kLargest };
enum class Order : std::uint8_t { kFcfs, kPriority, kShortestPrompt };

struct Policy {
  Admission admission = Admission::kIteration;
  Delivery delivery = Delivery::kAtOnce;
  std::uint32_t batch_window_ms = 0;  // longest wait for a batch of request admission to fill
  std::uint32_t batch_size = 0;       // most requests in it; 0: as many as may run
  Layout layout = Layout::kPacked;
  Phases phases = Phases::kMixed;
  std::uint32_t max_chunk_tokens = 0;  // most tokens of one prompt per step; 0: the step's budget
  std::uint32_t tbt_target_ms = 0;     // for the time between tokens; 0: the limits' step_ms
  KvAllocation kv = KvAllocation::kOnDemand;
  Preemption preemption = Preemption::kRecompute;
  Victim victim = Victim::kYoungest;
  Order order = Order::kFcfs;
  std::uint32_t max_wait_ms = 0;  // longer expected waits are refused; 0: none is
  bool prefix_cache = true;

  bool operator==(const Policy&) const = default;
};

// "no-cache", "static", "dynamic", "iteration", "packed", "continuous": from the simplest on.
std::span<const std::string_view> policy_names();
std::optional<Policy> named_policy(std::string_view name);
// The name of the policy with exactly these switches, or "custom".
std::string_view policy_name(const Policy& policy);

// A switch as the dashboard and the command line spell it, where "kv" is --kv-allocation.
struct PolicySwitch {
  std::string_view name;                     // "admission", ..., "prefix-cache"
  std::span<const std::string_view> values;  // empty: a number
  std::string_view meaning;                  // one line, for help texts
  std::string_view counts = {};              // what a number counts
};
std::span<const PolicySwitch> policy_switches();

// Sets the switch, or returns what is wrong and leaves the policy unchanged. Names may be spelt
// with '-', '_' or ' '; milliseconds with or without "ms".
std::optional<std::string> set_switch(Policy& policy, std::string_view name,
                                      std::string_view value);
// The switch's value in the form set_switch() takes; nothing if there is no such switch.
std::optional<std::string> switch_value(const Policy& policy, std::string_view name);
// Every switch as "name=value", separated by spaces.
std::string describe(const Policy& policy);

}  // namespace hearth
