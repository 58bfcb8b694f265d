// Controls the engine of a server over POST /control. Changes are sent one after the other; while
// one has no reply yet, a later one of the same kind replaces the one that waits, so that dragging
// a slider does not flood the server.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "ui/engine_control.h"
#include "ui/feeds/engine_view.h"
#include "ui/feeds/remote_calls.h"

namespace hearth {

class RemoteControl final : public EngineControl {
 public:
  explicit RemoteControl(RemoteCalls& calls) : calls_(calls) {}

  // Call once per frame, with what the server says about itself.
  void update(const EngineView& view);

  Policy policy() const override { return policy_; }
  SchedulerLimits limits() const override { return limits_; }
  SchedulerLimits initial_limits() const override { return most_; }
  bool paused() const override { return paused_; }

  void set_policy(const Policy& policy) override;
  void set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks) override;
  void pause(bool paused) override;
  void step_once() override;
  void set_pace(double steps_per_s) override;
  void cancel(RequestId request) override;
  void set_priority(RequestId request, int32_t priority) override;

  std::string failure() const override { return failure_; }

 private:
  void send(const char* field, nlohmann::json value, bool replaces);

  RemoteCalls& calls_;
  Policy policy_;
  SchedulerLimits limits_, most_;
  bool paused_ = false;
  std::shared_ptr<RemoteCall> call_;  // without a reply yet; null: none
  std::deque<nlohmann::json> waiting_;
  std::string failure_;
};

}  // namespace hearth
