// Reads what step_event.cpp writes. Events come from another machine, so every value is checked.
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "engine/weights/json_text.h"
#include "tools/server/step_event.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr JsonLimits kLimits{.depth = 8, .token_bytes = 4096, .total_bytes = 4u << 20};

Result<json> parse_event_object(std::string_view text) {
  HEARTH_TRY(check_json_limits(text, kLimits));
  json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return Error{ErrorKind::kInvalid, "an event is not JSON"};
  if (!object.is_object()) return Error{ErrorKind::kInvalid, "an event is not a JSON object"};
  return object;
}

// Reads the fields of an object, and keeps the first error.
class EventFields {
 public:
  EventFields(const json& object, std::string_view name, std::string& wrong)
      : object_(object), name_(name), wrong_(wrong) {
    if (!object.is_object()) complain({}, "an object");
  }

  template <class T>
  requires std::is_unsigned_v<T>
  void read(const char* key, T& value) {
    const json* const found = find(key);
    if (found == nullptr) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (!found->is_boolean()) return complain(key, "true or false");
      value = found->get<bool>();
    } else {
      if (!found->is_number_unsigned() || found->get<uint64_t>() > std::numeric_limits<T>::max())
        return complain(key, "a whole number that fits");
      value = found->get<T>();
    }
  }
  void read(const char* key, double& value) {
    const json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) return complain(key, "a number");
    const double number = found->get<double>();
    if (!std::isfinite(number) || number < 0) return complain(key, "a time");
    value = number;
  }
  void read(const char* key, std::string& value) {
    const json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return complain(key, "text");
    value = found->get<std::string>();
  }
  void read(const char* key, std::vector<RequestId>& values) {
    each(key, [&](const json& item) {
      if (item.is_number_unsigned())
        values.push_back(item.get<RequestId>());
      else
        complain(key, "a list of numbers");
    });
  }
  // `fill(fields, item)` for each object of a list.
  template <class T, class Fill>
  void read_list(const char* key, std::vector<T>& values, Fill fill) {
    each(key, [&](const json& item) {
      EventFields fields(item, key, wrong_);
      fill(fields, values.emplace_back());
    });
  }
  template <class Fill>
  void read_object(const char* key, Fill fill) {
    if (const json* const found = find(key)) {
      EventFields fields(*found, key, wrong_);
      fill(fields);
    }
  }
  const json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void complain(std::string_view key, std::string_view wanted) {
    if (!wrong_.empty()) return;
    wrong_ =
        fmt::format("{}{}{} of an event is not {}", name_, key.empty() ? "" : ".", key, wanted);
  }

 private:
  template <class Take>
  void each(const char* key, Take take) {
    const json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return complain(key, "a list");
    for (const json& item : *found) take(item);
  }

  const json& object_;
  std::string_view name_;
  std::string& wrong_;
};

// The fields that events of steps and of counts have in common.
void read_gauges(EventFields& event, SchedulerCounts& counts) {
  event.read_object("blocks", [&](EventFields& blocks) {
    blocks.read("used", counts.blocks_used);
    blocks.read("cached", counts.blocks_cached);
    blocks.read("free", counts.blocks_free);
  });
  event.read_object("requests", [&](EventFields& requests) {
    requests.read("running", counts.running);
    requests.read("waiting", counts.waiting);
    requests.read("swapped", counts.swapped);
  });
}

}  // namespace

Result<StepRecord> parse_step_event(std::string_view text) {
  HEARTH_ASSIGN(const json object, parse_event_object(text));
  return read_step_event(object);
}

Result<StepRecord> read_step_event(const json& object) {
  if (!object.is_object()) return Error{ErrorKind::kInvalid, "an event is not a JSON object"};
  StepRecord record;
  std::string wrong;
  EventFields step(object, "step", wrong);
  step.read("step", record.step);
  step.read("begin_seconds", record.begin_seconds);
  step.read("end_seconds", record.end_seconds);
  step.read("plan_seconds", record.plan_seconds);
  step.read("submit_seconds", record.submit_seconds);
  step.read("run_seconds", record.run_seconds);
  step.read("wait_seconds", record.wait_seconds);
  step.read("tokens", record.tokens);
  step.read("padding_tokens", record.padding_tokens);
  step.read("sampled_tokens", record.sampled_tokens);
  step.read_list("members", record.members, [](EventFields& fields, StepMember& member) {
    std::string phase = "decode";
    fields.read("request", member.request);
    fields.read("slot", member.slot);
    fields.read("phase", phase);
    fields.read("first_position", member.first_position);
    fields.read("tokens", member.tokens);
    fields.read("samples", member.samples);
    fields.read("proposed", member.proposed);
    fields.read("accepted", member.accepted);
    if (phase != "prompt" && phase != "decode") fields.complain("phase", "prompt or decode");
    member.phase = phase == "prompt" ? StepPhase::kPrompt : StepPhase::kDecode;
  });
  step.read_list("arrived", record.arrived, [](EventFields& fields, StepRecord::Arrival& arrival) {
    fields.read("request", arrival.request);
    fields.read("seconds", arrival.seconds);
    fields.read("prompt_tokens", arrival.prompt_tokens);
    fields.read("max_tokens", arrival.max_tokens);
  });
  step.read("admitted", record.admitted);
  step.read("finished", record.finished);
  step.read("cancelled", record.cancelled);
  step.read("preempted_recompute", record.preempted_recompute);
  step.read("preempted_swap", record.preempted_swap);
  step.read_list("prefix_hits", record.prefix_hits,
                 [](EventFields& fields, BatchPlan::PrefixHit& hit) {
                   fields.read("request", hit.request);
                   fields.read("tokens", hit.tokens);
                 });
  SchedulerCounts& counts = record.counts;
  read_gauges(step, counts);
  step.read_object("blocks", [&](EventFields& blocks) {
    blocks.read("shared", counts.blocks_shared);
    blocks.read("reserved", counts.blocks_reserved);
    blocks.read("swap_used", counts.swap_used);
    blocks.read("swap_total", counts.swap_total);
    blocks.read("copied", record.blocks_copied);
    blocks.read("swapped_out", record.blocks_swapped_out);
    blocks.read("swapped_in", record.blocks_swapped_in);
  });
  step.read_object("requests",
                   [&](EventFields& requests) { requests.read("ending", counts.ending); });
  step.read("kv_tokens", counts.kv_tokens);
  step.read("wasted_tokens", counts.wasted_tokens);
  if (!wrong.empty()) return Error{ErrorKind::kInvalid, std::move(wrong)};
  return record;
}

Result<SchedulerCounts> parse_counts_event(std::string_view text, SchedulerCounts before) {
  HEARTH_ASSIGN(const json object, parse_event_object(text));
  SchedulerCounts counts = before;
  std::string wrong;
  EventFields fields(object, "counts", wrong);
  read_gauges(fields, counts);
  if (!wrong.empty()) return Error{ErrorKind::kInvalid, std::move(wrong)};
  return counts;
}

Result<EngineHello> parse_hello_event(std::string_view text) {
  HEARTH_ASSIGN(const json object, parse_event_object(text));
  EngineHello hello;
  std::string wrong;
  EventFields fields(object, "hello", wrong);
  fields.read("model", hello.model);
  fields.read("device", hello.device);
  fields.read("instance", hello.instance);
  fields.read("now", hello.now);
  fields.read_object("limits", [&](EventFields& limits) {
    limits.read("max_sequences", hello.limits.max_sequences);
    limits.read("max_step_tokens", hello.limits.max_step_tokens);
    limits.read("context", hello.limits.context);
    limits.read("pool_blocks", hello.limits.pool_blocks);
    limits.read("swap_blocks", hello.limits.swap_blocks);
    limits.read("max_queue", hello.limits.max_queue);
  });
  hello.most = hello.limits;
  fields.read_object("most", [&](EventFields& most) {
    most.read("max_sequences", hello.most.max_sequences);
    most.read("max_step_tokens", hello.most.max_step_tokens);
    most.read("pool_blocks", hello.most.pool_blocks);
  });
  fields.read("vocabulary", hello.vocabulary);
  fields.read("controllable", hello.controllable);
  fields.read("paused", hello.paused);
  fields.read("pace", hello.pace);
  fields.read_object("policy", [&](EventFields& policy) {
    for (const PolicySwitch& entry : policy_switches()) {
      std::string value;
      policy.read(std::string(entry.name).c_str(), value);
      if (value.empty()) continue;
      if (set_switch(hello.policy, entry.name, value)) policy.complain(entry.name, "a known value");
    }
  });
  if (!wrong.empty()) return Error{ErrorKind::kInvalid, std::move(wrong)};
  return hello;
}

}  // namespace hearth
