// Helpers that build step records for the tests of panel data.
#pragma once

#include <initializer_list>
#include <utility>

#include "ui/feeds/engine_view.h"

namespace hearth::test {

inline StepMember prompt(RequestId request, uint32_t first, uint32_t tokens, bool samples = false) {
  return {.request = request,
          .phase = StepPhase::kPrompt,
          .first_position = first,
          .tokens = tokens,
          .samples = samples};
}

inline StepMember decode(RequestId request, uint32_t position) {
  return {.request = request,
          .phase = StepPhase::kDecode,
          .first_position = position,
          .tokens = 1,
          .samples = true};
}

// A step that was planned in 1 ms and ran for 8 ms, until `end_seconds`.
inline StepRecord step(uint64_t number, double end_seconds,
                       std::initializer_list<StepMember> members = {}) {
  StepRecord record;
  record.step = number;
  record.begin_seconds = end_seconds - 0.009;
  record.plan_seconds = 0.001;
  record.submit_seconds = end_seconds - 0.008;
  record.run_seconds = 0.008;
  record.wait_seconds = 0.006;
  record.end_seconds = end_seconds;
  record.members = members;
  for (const StepMember& member : members) {
    record.tokens += member.tokens;
    if (member.samples) ++record.sampled_tokens;
  }
  return record;
}

inline StepRecord::Arrival arrival(RequestId request, double seconds, uint32_t prompt_tokens = 8,
                                   uint32_t max_tokens = 16) {
  return {.request = request,
          .seconds = seconds,
          .prompt_tokens = prompt_tokens,
          .max_tokens = max_tokens};
}

// The view of an engine of generation 1, without a snapshot.
inline EngineView view_of(std::vector<StepRecord> steps) {
  EngineView view;
  view.connected = true;
  view.generation = 1;
  if (!steps.empty()) {
    view.now = steps.back().end_seconds;
    view.counts = steps.back().counts;
  }
  view.new_steps = std::move(steps);
  return view;
}

}  // namespace hearth::test
