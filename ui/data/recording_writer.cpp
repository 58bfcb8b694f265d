#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/replay/perfetto_trace.h"
#include "tools/server/step_event.h"
#include "ui/data/recording.h"

namespace hearth {
namespace {

using nlohmann::json;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool same_limits(const SchedulerLimits& a, const SchedulerLimits& b) {
  return hello_event({.limits = a}) == hello_event({.limits = b});
}

json row_of(const EngineTotals& totals) {
  return {totals.requests_submitted,  totals.requests_refused,  totals.requests_finished,
          totals.prompt_tokens,       totals.generated_tokens,  totals.padding_tokens,
          totals.prefix_query_tokens, totals.prefix_hit_tokens, totals.preemptions_recompute,
          totals.preemptions_swap};
}

json row_of(const SchedulerCounts& counts) {
  return {counts.waiting,       counts.running,       counts.swapped,     counts.ending,
          counts.blocks_used,   counts.blocks_cached, counts.blocks_free, counts.blocks_reserved,
          counts.blocks_shared, counts.swap_used,     counts.swap_total,  counts.kv_tokens,
          counts.wasted_tokens};
}

json row_of(const SequenceView& sequence) {
  return {sequence.id,
          static_cast<int>(sequence.state),
          sequence.slot,
          int64_t{sequence.priority} + (int64_t{1} << 31),
          sequence.prompt_tokens,
          sequence.committed,
          sequence.proposed,
          sequence.computed,
          sequence.max_tokens,
          sequence.pending ? 1 : 0,
          sequence.ready ? 1 : 0,
          sequence.batch,
          sequence.blocks,
          sequence.preemptions};
}

json row_of(uint32_t index, const BlockView& block) {
  return {index,         static_cast<int>(block.state),
          block.owner,   block.references,
          block.filled,  block.hash,
          block.last_use};
}

json snapshot_of(const RecordedMoment& moment, const std::vector<BlockView>* all_blocks) {
  json changed = json::array();
  if (all_blocks != nullptr)
    for (size_t i = 0; i < all_blocks->size(); ++i)
      changed.push_back(row_of(static_cast<uint32_t>(i), (*all_blocks)[i]));
  for (const auto& [index, block] : moment.changed) changed.push_back(row_of(index, block));
  json sequences = json::array();
  for (const SequenceView& sequence : moment.sequences) sequences.push_back(row_of(sequence));
  return {{"step", moment.snapshot_step},
          {"blocks", moment.blocks},
          {"changed", std::move(changed)},
          {"sequences", std::move(sequences)}};
}

std::string own_events(const ViewHistory& history) {
  std::string text = fmt::format(
      "\"hearth\":{{\"version\":1,\"source\":{},\"model\":{},\"device\":{},\"moments\":[",
      dumped(history.source()), dumped(history.model()), dumped(history.device()));
  uint64_t next = history.first();
  const RecordedMoment* before = nullptr;
  for (const RecordedMoment& moment : history.moments()) {
    json object = {{"now", moment.now},
                   {"state", static_cast<int>(moment.state)},
                   {"restart", moment.restart},
                   {"restart_seconds", moment.restart_seconds},
                   {"counts", row_of(moment.counts)},
                   {"totals", row_of(moment.totals)}};
    if (before == nullptr || before->policy != moment.policy ||
        !same_limits(before->limits, moment.limits))
      object["hello"] = hello_event({.limits = moment.limits, .policy = moment.policy});
    if (moment.has_snapshot)
      object["snapshot"] =
          snapshot_of(moment, before == nullptr ? &history.first_blocks() : nullptr);
    json steps = json::array();
    if (next < moment.end && history.missed_before(next) > 0)
      object["missed"] = history.missed_before(next);
    for (; next < moment.end; ++next) steps.push_back(step_event(history.step(next)));
    object["steps"] = std::move(steps);
    text += before == nullptr ? "\n" : ",\n";
    text += dumped(object);
    before = &moment;
  }
  return text + "]}";
}

}  // namespace

Status write_recording(const ViewHistory& history, const std::string& path) {
  const std::string unfinished = path + ".part";
  HEARTH_ASSIGN(const std::unique_ptr<PerfettoTrace> trace, PerfettoTrace::create(unfinished));
  const RecordedMoment& last = history.moments().back();
  trace->begin_run(fmt::format("{}: {}", history.source(), policy_name(last.policy)),
                   last.limits.max_sequences, history.step(history.first()).begin_seconds);
  for (uint64_t i = history.first(); i < history.end(); ++i) trace->add(history.step(i));
  HEARTH_TRY(trace->finish(own_events(history)));
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path, error.message())};
}

}  // namespace hearth
