// What happens if a kernel of a chain (chain.h) gives up waiting, which it does after half a
// second: from then on the device uses barriers, and every step in flight runs again.
//
// The kernel sets a flag that later kernels and the host can see. Kernels that change what outlives
// a step do nothing while it is set (shaders/common/chain.glsl), so that the steps in flight can
// run again in the order in which they were submitted, with the same input. Those that must not run
// twice (Dispatch::lasting) run after the last wait of their step. Nothing else that steps depend
// on may be changed in between: settle() first.
//
// One thread at a time, the one that submits steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/chain.h"
#include "runtime/result.h"
#include "runtime/timeline.h"

namespace hearth {

class Device;

// A submitter of chained steps.
class ChainUser {
 public:
  virtual ~ChainUser() = default;
  // Submits step `which` again, recorded with barriers. Called at most once per step, in the order
  // of submission, when the GPU is idle or runs earlier steps again.
  virtual Status rerun(size_t which) = 0;
};

class ChainGuard {
 public:
  explicit ChainGuard(Device& device) : device_(device) {}
  ChainGuard(const ChainGuard&) = delete;
  ChainGuard& operator=(const ChainGuard&) = delete;

  // Allocates the chain's memory. Without it nothing is chained.
  Status open();
  // Frees it. REQUIRES: the GPU is done with it.
  void close();
  // Whether kernels are compiled so that they can wait. Never changes after open().
  bool is_open() const { return memory_.operator bool(); }
  // Whether to record chains: not after a wait has failed.
  bool usable() const { return is_open() && !failed_; }
  // From now on barriers are used. What was recorded as a chain must not run any more.
  void turn_off() { failed_ = true; }

  // For the recorder: the memory (chain.h). REQUIRES: is_open().
  uint64_t address() const;
  BufferSlice links() const;
  size_t buffers() const { return is_open() ? 2 : 0; }

  // A step of `user` was submitted, recorded while the chain was usable. Forgotten once it is
  // known to be right.
  void submitted(ChainUser& user, size_t which, const TimelinePoint& done);
  void forget(const ChainUser& user);
  // REQUIRES: `done` was waited for. Notes that steps up to it are right; or, if a wait has failed
  // on the device, logs so and runs all steps in flight again, which are then to be waited for.
  Status check(const TimelinePoint& done);
  // The same after waiting for all steps in flight.
  Status settle();
  // Whether a kernel has given up since open(). REQUIRES: its submission was waited for.
  Result<bool> wait_failed() const;

 private:
  struct Step {
    ChainUser* user;
    size_t which;
    TimelinePoint done;
  };

  Device& device_;
  Buffer memory_;       // larger than needed, for the alignment
  Buffer host_failed_;  // one word
  bool failed_ = false;
  std::vector<Step> steps_;  // in flight, in the order of submission
};

}  // namespace hearth
