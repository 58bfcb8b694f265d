#include "ui/feeds/remote_control.h"

#include <algorithm>
#include <utility>

#include "tools/server/step_event.h"

namespace hearth {

void RemoteControl::update(const EngineView& view) {
  policy_ = view.policy;
  limits_ = view.limits;
  most_ = view.most_limits;
  paused_ = view.state == EngineState::kPaused;
  if (call_ && call_->ended()) {
    failure_ = call_->failure();
    call_.reset();
  }
  if (call_ || waiting_.empty()) return;
  call_ = calls_.post("/control", waiting_.front().dump());
  waiting_.pop_front();
}

void RemoteControl::send(const char* field, nlohmann::json value, bool replaces) {
  if (replaces) {
    const auto same = std::ranges::find_if(
        waiting_, [&](const nlohmann::json& body) { return body.contains(field); });
    if (same != waiting_.end()) waiting_.erase(same);
  }
  waiting_.push_back({{field, std::move(value)}});
}

void RemoteControl::set_policy(const Policy& policy) {
  send("policy", policy_json(policy), /*replaces=*/true);
}

void RemoteControl::set_limits(uint32_t max_sequences, uint32_t max_step_tokens,
                               uint32_t pool_blocks) {
  nlohmann::json limits = {{"max_sequences", max_sequences}, {"max_step_tokens", max_step_tokens}};
  if (pool_blocks != 0) limits["pool_blocks"] = pool_blocks;
  send("limits", std::move(limits), /*replaces=*/true);
}

void RemoteControl::pause(bool paused) { send("paused", paused, /*replaces=*/true); }
void RemoteControl::step_once() { send("step", true, /*replaces=*/false); }
void RemoteControl::set_pace(double steps_per_s) { send("pace", steps_per_s, /*replaces=*/true); }
void RemoteControl::cancel(RequestId request) {
  send("cancel", nlohmann::json::array({request}), /*replaces=*/false);
}
void RemoteControl::set_priority(RequestId request, int32_t priority) {
  send("priority", {{"request", request}, {"value", priority}}, /*replaces=*/false);
}

}  // namespace hearth
