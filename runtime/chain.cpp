#include "runtime/chain.h"

#include <cassert>

namespace hearth {

void Chain::restart() {
  if (arrivals_ > 0) ++link_;
  wait_ = 0;
  arrivals_ = large_ = 0;
  unchained_ = !enabled() || link_ >= kLinks;
}

void Chain::start_link() {
  assert(can_start_link());
  ++link_;
  wait_ = arrivals_;
  arrivals_ = large_ = 0;
}

ChainPush Chain::add(uint32_t groups) {
  if (unchained_) return {.counter = memory_};
  ChainPush push{.counter = memory_ + (link_ + 1) * kChainStride, .wait = wait_};
  if (groups > large_dispatch_ && large_ + 1 < kChainStride / kCountStride) {
    push.counter += ++large_ * kCountStride;
    push.groups = groups;
    arrivals_ += 1;
  } else {
    arrivals_ += groups;
  }
  return push;
}

}  // namespace hearth
