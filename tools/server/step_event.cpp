#include "tools/server/step_event.h"

namespace hearth {

nlohmann::json step_event(const StepRecord& record) {
  using nlohmann::json;
  json members = json::array();
  for (const StepMember& member : record.members)
    members.push_back({{"request", member.request},
                       {"slot", member.slot},
                       {"phase", member.phase == StepPhase::kPrompt ? "prompt" : "decode"},
                       {"first_position", member.first_position},
                       {"tokens", member.tokens},
                       {"samples", member.samples},
                       {"proposed", member.proposed},
                       {"accepted", member.accepted}});
  json hits = json::array();
  for (const BatchPlan::PrefixHit& hit : record.prefix_hits)
    hits.push_back({{"request", hit.request}, {"tokens", hit.tokens}});
  json arrived = json::array();
  for (const StepRecord::Arrival& arrival : record.arrived)
    arrived.push_back({{"request", arrival.request},
                       {"seconds", arrival.seconds},
                       {"prompt_tokens", arrival.prompt_tokens},
                       {"max_tokens", arrival.max_tokens}});
  const SchedulerCounts& counts = record.counts;
  return {{"step", record.step},
          {"begin_seconds", record.begin_seconds},
          {"end_seconds", record.end_seconds},
          {"plan_seconds", record.plan_seconds},
          {"submit_seconds", record.submit_seconds},
          {"run_seconds", record.run_seconds},
          {"wait_seconds", record.wait_seconds},
          {"tokens", record.tokens},
          {"padding_tokens", record.padding_tokens},
          {"sampled_tokens", record.sampled_tokens},
          {"members", std::move(members)},
          {"arrived", std::move(arrived)},
          {"admitted", record.admitted},
          {"finished", record.finished},
          {"cancelled", record.cancelled},
          {"preempted_recompute", record.preempted_recompute},
          {"preempted_swap", record.preempted_swap},
          {"prefix_hits", std::move(hits)},
          {"blocks",
           {{"used", counts.blocks_used},
            {"cached", counts.blocks_cached},
            {"free", counts.blocks_free},
            {"shared", counts.blocks_shared},
            {"reserved", counts.blocks_reserved},
            {"swap_used", counts.swap_used},
            {"swap_total", counts.swap_total},
            {"copied", record.blocks_copied},
            {"swapped_out", record.blocks_swapped_out},
            {"swapped_in", record.blocks_swapped_in}}},
          {"requests",
           {{"running", counts.running},
            {"waiting", counts.waiting},
            {"swapped", counts.swapped},
            {"ending", counts.ending}}},
          {"kv_tokens", counts.kv_tokens},
          {"wasted_tokens", counts.wasted_tokens}};
}

nlohmann::json counts_event(const SchedulerCounts& counts) {
  return {
      {"blocks",
       {{"used", counts.blocks_used},
        {"cached", counts.blocks_cached},
        {"free", counts.blocks_free}}},
      {"requests",
       {{"running", counts.running}, {"waiting", counts.waiting}, {"swapped", counts.swapped}}}};
}

nlohmann::json policy_json(const Policy& policy) {
  nlohmann::json switches = nlohmann::json::object();
  for (const PolicySwitch& entry : policy_switches())
    switches[std::string(entry.name)] = *switch_value(policy, entry.name);
  return switches;
}

nlohmann::json hello_event(const EngineHello& hello) {
  return {{"model", hello.model},
          {"device", hello.device},
          {"limits",
           {{"max_sequences", hello.limits.max_sequences},
            {"max_step_tokens", hello.limits.max_step_tokens},
            {"context", hello.limits.context},
            {"pool_blocks", hello.limits.pool_blocks},
            {"swap_blocks", hello.limits.swap_blocks},
            {"max_queue", hello.limits.max_queue}}},
          {"most",
           {{"max_sequences", hello.most.max_sequences},
            {"max_step_tokens", hello.most.max_step_tokens},
            {"pool_blocks", hello.most.pool_blocks}}},
          {"policy", policy_json(hello.policy)},
          {"instance", hello.instance},
          {"now", hello.now},
          {"vocabulary", hello.vocabulary},
          {"controllable", hello.controllable},
          {"paused", hello.paused},
          {"pace", hello.pace}};
}

}  // namespace hearth
