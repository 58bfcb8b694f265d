// Dependent dispatches without barriers between them. A barrier drains the GPU before the next
// kernel may even start. In a chain, workgroups of the next kernel start as soon as those of the
// previous one leave room, load what depends on no other kernel (weights), and wait on the GPU
// until the workgroups before them are done (shaders/common/chain.glsl).
//
// A chain consists of links. Dispatches of one link do not depend on each other and share a counter
// in memory; dispatches of the next link wait until all workgroups of this one have incremented it
// ("arrived"). Waiting for a link implies waiting for all links before it. The workgroups of a
// small dispatch arrive one by one. Those of a large dispatch use a second counter, and only the
// last of them arrives, so that many incrementing workgroups do not contend with many polling ones.
//
// Only for devices that start workgroups in the order of their dispatches
// (DeviceFeatures::ordered_groups); otherwise waiting workgroups could keep out those they wait
// for. Vulkan does not promise this order, so it is used with known drivers only (chain_drivers.h),
// after a test (chain_check.h), and no wait lasts forever (chain_guard.h).
//
// Pure bookkeeping without Vulkan, like Hazards. Each recorder has its own, used by one thread.
#pragma once

#include <cstdint>

namespace hearth {

// What a kernel needs for chaining: the last bytes of every kernel's push constants.
struct ChainPush {
  // The address of the counter that its workgroups increment, within the link's kChainStride bytes.
  // The beginning of the chain's memory: they increment nothing, but can see whether a wait has
  // failed. 0: neither.
  uint64_t counter = 0;
  // How many arrivals to wait for at the previous link, whose bytes are kChainStride below; 0 if it
  // need not wait.
  uint32_t wait = 0;
  // The number of workgroups of a large dispatch, of which only the last one counts as an arrival;
  // 0 if each of them does.
  uint32_t groups = 0;
};

// A link has kChainStride bytes, aligned to kChainStride: the arrivals first, then the counters of
// large dispatches, kCountStride apart.
inline constexpr uint64_t kChainStride = 256, kCountStride = 64;
// Kernels find the beginning of the memory by this alignment.
inline constexpr uint64_t kChainBytes = 256 * 1024, kChainAlignment = kChainBytes;

// The beginning of the memory, before the first link; it is not cleared between steps.
struct ChainState {
  uint32_t failed = 0;  // 1: a workgroup has given up waiting
  uint32_t unused = 0;
  uint64_t host_failed = 0;  // the address of a word in host memory that is set as well
};

class Chain {
 public:
  // Dispatches of more workgroups than this are large, unless the caller knows a better number for
  // the device. It decides only about speed.
  static constexpr uint32_t kDefaultLargeDispatch = 256;

  Chain() = default;
  // `memory` is the address of kChainBytes bytes, aligned to kChainAlignment, whose links are zero
  // at the first barrier. Without links nothing waits, but kernels see whether a wait has failed.
  explicit Chain(uint64_t memory, bool has_links = true,
                 uint32_t large_dispatch = kDefaultLargeDispatch)
      : memory_(memory), large_dispatch_(large_dispatch), has_links_(has_links) {}

  bool enabled() const { return has_links_; }
  // A barrier was recorded: the next dispatch does not wait.
  void restart();
  // Whether a new link can wait for the current one: all commands in it arrive.
  bool can_start_link() const { return arrivals_ > 0 && !unchained_ && link_ + 1 < kLinks; }
  // Starts the next link. REQUIRES: can_start_link().
  void start_link();
  // Whether commands before the current link may still be running. A command that cannot wait for
  // them then needs a barrier, whatever it accesses.
  bool is_waiting() const { return wait_ > 0; }
  // Adds a dispatch to the current link.
  ChainPush add(uint32_t groups);
  // From now on nothing waits, until the end of the recording. REQUIRES: !is_waiting().
  void end() { has_links_ = false; }
  // Adds a command that does not arrive. REQUIRES: !is_waiting().
  ChainPush add_unchained() {
    unchained_ = true;
    return {.counter = memory_};
  }

 private:
  // The first entry is the ChainState; no link waits for it.
  static constexpr uint64_t kLinks = kChainBytes / kChainStride - 1;

  uint64_t memory_ = 0;
  uint32_t large_dispatch_ = kDefaultLargeDispatch;
  bool has_links_ = false;
  uint64_t link_ = 0;  // the current one
  uint32_t wait_ = 0;
  uint32_t arrivals_ = 0;  // at the current link
  uint32_t large_ = 0;     // large dispatches in the current link
  // The current link has commands that do not arrive; so it is before the first barrier, when the
  // counters are not zero yet.
  bool unchained_ = true;
};

}  // namespace hearth
