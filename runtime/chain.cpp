#include "runtime/chain.h"

#include <cassert>

namespace hearth {

void Chain::restart() {
  if (arrivals_ > 0) ++open_;
  wait_ = 0;
  arrivals_ = counted_ = 0;
  foreign_ = !on() || open_ >= kLinks;
}

void Chain::follow() {
  assert(can_follow());
  ++open_;
  wait_ = arrivals_;
  arrivals_ = counted_ = 0;
}

ChainPush Chain::add(uint32_t groups) {
  if (foreign_) return {};
  ChainPush push{.place = places_ + (open_ + 1) * kChainStride, .wait = wait_};
  if (groups > kManyGroups && counted_ + 1 < kChainStride / kCountStride) {
    push.place += ++counted_ * kCountStride;
    push.groups = groups;
    arrivals_ += 1;
  } else {
    arrivals_ += groups;
  }
  return push;
}

}  // namespace hearth
