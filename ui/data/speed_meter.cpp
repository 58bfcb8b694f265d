#include "ui/data/speed_meter.h"

namespace hearth {

void SpeedMeter::update(uint64_t generated_tokens, double now) {
  constexpr double kWindowSeconds = 1, kLeastSeconds = 0.2;
  if (!readings_.empty() &&
      (generated_tokens < readings_.back().tokens || now < readings_.back().at)) {
    readings_.clear();
    rate_ = 0;
  }
  // An idle engine keeps its last speed: the window begins again with the next token.
  if (!readings_.empty() && generated_tokens == readings_.back().tokens) {
    idle_ = idle_ || now - readings_.back().at > kWindowSeconds;
    if (idle_) readings_ = {{generated_tokens, now}};
    return;
  }
  idle_ = false;
  readings_.push_back({generated_tokens, now});
  while (readings_.size() > 2 && now - readings_[1].at >= kWindowSeconds) readings_.pop_front();
  const double seconds = now - readings_.front().at;
  if (seconds >= kLeastSeconds)
    rate_ = static_cast<double>(generated_tokens - readings_.front().tokens) / seconds;
}

}  // namespace hearth
