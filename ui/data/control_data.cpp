#include "ui/data/control_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hearth {

std::string_view policy_description(std::string_view name) {
  if (name == "no-cache")
    return "Nothing is cached: every step computes each sequence from its first token on.";
  if (name == "static")
    return "Static batching: a batch is padded to its longest sequence and runs until its last one "
           "ends. Results are delivered together.";
  if (name == "dynamic")
    return "Static batching that waits a moment for the batch to fill before it starts.";
  if (name == "iteration")
    return "Requests join and leave at every step. Every step is padded to its longest member.";
  if (name == "packed") return "A batch runs until its last sequence ends, but without padding.";
  if (name == "continuous")
    return "Requests join and leave at every step, without padding. KV blocks are allocated as "
           "they fill; prefixes are shared.";
  return "A combination of switches that has no name.";
}

std::vector<SwitchRow> switch_rows(const Policy& policy) {
  std::vector<SwitchRow> rows;
  for (const PolicySwitch& entry : policy_switches()) {
    SwitchRow row{.name = entry.name, .description = entry.meaning, .values = entry.values};
    const std::string value = *switch_value(policy, entry.name);
    if (entry.values.empty())
      std::from_chars(value.data(), value.data() + value.size(), row.number);
    else
      row.selected = static_cast<size_t>(std::ranges::find(entry.values, std::string_view(value)) -
                                         entry.values.begin());
    rows.push_back(row);
  }
  return rows;
}

Policy with_switch(const Policy& policy, std::string_view name, std::string_view value) {
  Policy changed = policy;
  set_switch(changed, name, value);
  return changed;
}

std::vector<LimitRow> limit_rows(const SchedulerLimits& limits, const SchedulerLimits& created) {
  return {{.name = "sequences",
           .description = "Maximum number of sequences running at once",
           .value = limits.max_sequences,
           .max = created.max_sequences},
          {.name = "token budget",
           .description = "Maximum number of tokens per step, including padding",
           .value = limits.max_step_tokens,
           .max = created.max_step_tokens},
          {.name = "pool blocks",
           .description =
               "KV blocks in the pool; the rest is withheld. The pool stays large enough for "
               "every current request",
           .value = limits.pool_blocks,
           .max = created.pool_blocks}};
}

SchedulerLimits with_limit(SchedulerLimits limits, LimitKind kind, uint32_t value) {
  value = std::max(value, 1u);
  switch (kind) {
    case LimitKind::kSequences:
      limits.max_sequences = value;
      break;
    case LimitKind::kStepTokens:
      limits.max_step_tokens = value;
      break;
    case LimitKind::kPoolBlocks:
      limits.pool_blocks = value;
      break;
  }
  return limits;
}

double pace_from_slider(double slider) {
  return kSlowestPace * std::pow(kFastestPace / kSlowestPace, std::clamp(slider, 0.0, 1.0));
}

double slider_from_pace(double pace) {
  if (pace <= 0) return 1;
  return std::clamp(std::log(pace / kSlowestPace) / std::log(kFastestPace / kSlowestPace), 0.0,
                    1.0);
}

}  // namespace hearth
