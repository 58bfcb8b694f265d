#include "engine/model/kernel_warm_up.h"

#include "runtime/device.h"
#include "runtime/empty_dispatch.h"
#include "runtime/queue.h"

namespace hearth {

Result<bool> KernelWarmUp::run_if_idle(const Pipeline& pipeline) {
  const Timeline& timeline = device_.compute().timeline();
  const uint64_t submitted = timeline.last_submitted();
  HEARTH_ASSIGN(const uint64_t reached, timeline.reached());
  const auto now = std::chrono::steady_clock::now();
  if (submitted != seen_ || reached < submitted) {
    seen_ = submitted;
    quiet_since_ = now;
  }
  if (now - quiet_since_ < kQuiet) return false;
  HEARTH_TRY(dispatch_empty(device_, pipeline));
  seen_ = submitted + 1;  // more were submitted if steps came meanwhile
  return true;
}

}  // namespace hearth
