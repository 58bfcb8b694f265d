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
// for. Vulkan does not promise this order.
//
// Pure bookkeeping without Vulkan, like Hazards. Each recorder has its own, used by one thread.
#pragma once

#include <cstdint>

namespace hearth {

// What a kernel needs for chaining: the last bytes of every kernel's push constants.
struct ChainPush {
  // The address of the counter that its workgroups increment, within the link's kChainStride bytes;
  // 0 if it is in no chain.
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
inline constexpr uint64_t kChainBytes = 256 * 1024;

class Chain {
 public:
  // Dispatches of more workgroups than this are large; measured on an H200.
  static constexpr uint32_t kLargeDispatch = 256;

  Chain() = default;
  // `memory` is the address of kChainBytes bytes that are zero at the first barrier.
  explicit Chain(uint64_t memory) : memory_(memory) {}

  bool enabled() const { return memory_ != 0; }
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
  // Adds a command that does not arrive. REQUIRES: !is_waiting().
  void add_unchained() { unchained_ = true; }

 private:
  // The first entry stays unused, because a link reads the one before its own.
  static constexpr uint64_t kLinks = kChainBytes / kChainStride - 1;

  uint64_t memory_ = 0;
  uint64_t link_ = 0;  // the current one
  uint32_t wait_ = 0;
  uint32_t arrivals_ = 0;  // at the current link
  uint32_t large_ = 0;     // large dispatches in the current link
  // The current link has commands that do not arrive; so it is before the first barrier, when the
  // counters are not zero yet.
  bool unchained_ = true;
};

}  // namespace hearth
