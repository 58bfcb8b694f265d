// What replays run on: a model on a device, or a modelled device in virtual time. One thread at a
// time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decoding/speculation/method.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/progress.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_requests.h"
#include "tools/replay/replay_setting.h"

namespace hearth {

// What is replayed once. The limits are at most the target's.
struct PlannedReplay {
  std::string label;
  Policy policy;
  SchedulerLimits limits;
  SpeculationOptions speculation = {};
};

class ReplayTarget {
 public:
  virtual ~ReplayTarget() = default;

  // Fills in what it runs on, and the most it can do.
  virtual void describe(ReplaySetting& setting) const = 0;
  // The ids that prompts are made of.
  virtual std::vector<TokenId> text_ids() const = 0;
  // Gets ready for these replays, so that none is charged for what comes up first. Adds what it
  // took to `overhead`.
  virtual Status prepare(std::span<const PlannedReplay> replays, const ReplayInput& input,
                         Progress& progress, ReplayOverhead& overhead) = 0;
  // Every replay gets a new engine, with an empty prefix cache and counters at 0.
  virtual Result<ReplayRun> replay(const PlannedReplay& planned, const ReplayInput& input) = 0;
};

std::unique_ptr<ReplayTarget> make_simulated_target(const ModelledDevice& device,
                                                    const ModelledLimits& wanted);
std::unique_ptr<ReplayTarget> make_device_target(std::unique_ptr<Session> session);

}  // namespace hearth
