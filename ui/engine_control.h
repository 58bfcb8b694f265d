// What the dashboard can change about the engine on display, wherever it runs. Call only from the
// window's thread; nothing here blocks.
#pragma once

#include <string>

#include "engine/engine.h"

namespace hearth {

class EngineControl {
 public:
  virtual ~EngineControl() = default;

  // Present settings, even if the display shows the past.
  virtual Policy policy() const = 0;
  virtual SchedulerLimits limits() const = 0;
  virtual SchedulerLimits initial_limits() const = 0;  // what limits can be raised to
  virtual bool paused() const = 0;

  virtual void set_policy(const Policy& policy) = 0;
  // `pool_blocks` 0 leaves the pool as it is.
  virtual void set_limits(uint32_t max_sequences, uint32_t max_step_tokens,
                          uint32_t pool_blocks) = 0;
  virtual void pause(bool paused) = 0;
  virtual void step_once() = 0;
  virtual void set_pace(double steps_per_s) = 0;  // 0: full speed
  virtual void cancel(RequestId request) = 0;
  virtual void set_priority(RequestId request, int32_t priority) = 0;

  // Why the last change did not happen; empty if it did.
  virtual std::string failure() const { return {}; }
};

// An engine in this process.
class LocalControl final : public EngineControl {
 public:
  explicit LocalControl(Engine& engine) : engine_(engine) {}

  Policy policy() const override { return engine_.policy(); }
  SchedulerLimits limits() const override { return engine_.limits(); }
  SchedulerLimits initial_limits() const override { return engine_.initial_limits(); }
  bool paused() const override { return engine_.state() == EngineState::kPaused; }

  void set_policy(const Policy& policy) override { engine_.set_policy(policy); }
  void set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks) override {
    engine_.set_limits(max_sequences, max_step_tokens, pool_blocks);
  }
  void pause(bool paused) override { paused ? engine_.pause() : engine_.resume(); }
  void step_once() override { engine_.step_once(); }
  void set_pace(double steps_per_s) override { engine_.set_pace(steps_per_s); }
  void cancel(RequestId request) override { engine_.cancel(request); }
  void set_priority(RequestId request, int32_t priority) override {
    engine_.set_priority(request, priority);
  }

 private:
  Engine& engine_;
};

}  // namespace hearth
