// The part of a run in which a whole batch decodes: after its last prompt, before its first end.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/generation.h"
#include "engine/step_record.h"
#include "runtime/result.h"

namespace hearth {

class Engine;

// Seconds of each step from the end of the one before it, by the step's rows.
using StepsByRows = std::map<uint32_t, std::vector<double>>;

// What a batch generated in the steps between its last prompt and its first end.
struct DecodeWindow {
  uint64_t tokens = 0, steps = 0, rows = 0;
  double seconds = 0;
  double host_seconds = 0;  // of these, without a step on the device
  StepsByRows steps_by_rows;

  double tokens_per_s() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
  double per_step(double sum) const { return steps > 0 ? sum / static_cast<double>(steps) : 0; }
  double step_ms() const { return per_step(seconds * 1e3); }
  // How long the device waits for the host between two steps.
  double host_ms_per_step() const { return per_step(host_seconds * 1e3); }
  DecodeWindow& operator+=(const DecodeWindow& other);
};

// REQUIRES: as done_seconds(). Empty if the batch never decoded together.
DecodeWindow decode_window(std::span<const StepRecord> records, uint32_t batch);

// Runs the requests to their ends: the steps in which all of them decoded. An error if one of them
// fails, or if they never decode together.
Result<DecodeWindow> decode_together(Engine& engine, std::vector<GenerationRequest> requests);

}  // namespace hearth
