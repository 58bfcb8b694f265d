// The same requests under two policies: what to run, and both runs step by step on one time axis.
//
// On the modelled device both engines run in virtual time, so a comparison takes a moment and is
// the same on every machine. On a real device the two runs are measured one after the other, each
// with a new engine: two engines at once would take the device's time from each other.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"
#include "engine/step_record.h"
#include "runtime/result.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/replay_target.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/trace.h"
#include "ui/data/comparison_spec.h"

namespace hearth {

// The requests unless others are chosen: more than can run at once, of different lengths.
inline constexpr std::string_view kComparedRequests =
    "synthetic:rate=12,n=24,prompt=24..200,gen=16..160,seed=1";

struct ComparisonPlan {
  std::array<PlannedReplay, 2> sides;
  Trace trace;
  std::string requests;  // the trace as it was written, for people
};

// The limits of both sides on the modelled device: small, so that blocks run out.
SchedulerLimits compared_limits();
// Both sides get the same limits and requests. Fails if the requests cannot be read.
Result<ComparisonPlan> plan_comparison(const PolicyPair& policies, const std::string& requests,
                                       const SchedulerLimits& limits);

// One side. Times count from the start of its run, so that both sides have the same axis.
struct ComparedRun {
  std::string label;
  Policy policy;
  SchedulerLimits limits;
  std::vector<StepRecord> steps;        // in order
  std::vector<RequestTiming> requests;  // in the trace's order; when their tokens were delivered

  // When the last step ended or the last token was delivered.
  double end_seconds() const;
};

struct Comparison {
  bool simulated = true;
  std::string model, device, requests;  // for people
  std::array<ComparedRun, 2> runs;

  double end_seconds() const;
};

// Both fail if a request can never run within the limits.
Result<Comparison> compare_modelled(const ModelledDevice& device, const ComparisonPlan& plan);
// Each side is run once before it is measured, because kernels are compiled when they first come
// up. `progress` gets what it is doing, for people. REQUIRES: no engine uses the session.
Result<Comparison> compare_on_session(Session& session, const ComparisonPlan& plan,
                                      const std::function<void(std::string)>& progress);

}  // namespace hearth
