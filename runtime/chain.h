// Dependent dispatches without barriers between them. A barrier lets the GPU run empty before the
// next kernel may so much as start; in a chain the next kernel's groups start as the last ones of
// the kernel before make room, load what depends on nobody (weights), and wait on the GPU until the
// groups before them are done (shaders/common/chain.glsl).
//
// A chain is made of links: dispatches of one link do not depend on each other and share a place in
// memory; those of the next link wait until all of them have arrived there. Who has waited for a
// link has waited for all links before it. The groups of a small dispatch arrive one by one; those
// of a large one are counted beside the place, and the last of them arrives for all, so that many
// groups that count do not meet many that look.
//
// Only for devices that start groups in the order of their dispatches (DeviceFeatures::
// ordered_groups): else waiting groups could keep out those they wait for. Vulkan itself promises
// no such order.
//
// Pure bookkeeping, like Hazards: knows no Vulkan. One recorder, one thread.
#pragma once

#include <cstdint>

namespace hearth {

// What a kernel needs to know: the last bytes of the push constants of every kernel.
struct ChainPush {
  uint64_t place = 0;   // where its groups are counted, inside the link's kChainStride; 0: nowhere
  uint32_t wait = 0;    // arrivals at the link before, kChainStride below; 0: nothing to wait for
  uint32_t groups = 0;  // whose last one arrives for all; 0: each arrives
};

// A link has kChainStride bytes, aligned to as many: arrivals first, then the counts of large
// dispatches, kCountStride apart.
inline constexpr uint64_t kChainStride = 256, kCountStride = 64;
inline constexpr uint64_t kChainBytes = 256 * 1024;

class Chain {
 public:
  // A dispatch of more is a large one; measured on an H200.
  static constexpr uint32_t kManyGroups = 256;

  Chain() = default;
  // `places` is the address of kChainBytes, which are zero by the first barrier.
  explicit Chain(uint64_t places) : places_(places) {}

  bool on() const { return places_ != 0; }
  // A barrier was recorded: the next dispatch waits for nobody.
  void restart();
  // Whether a new link can wait for the open one: all that is in it arrives.
  bool can_follow() const { return arrivals_ > 0 && !foreign_ && open_ + 1 < kLinks; }
  // Opens the next link. REQUIRES: can_follow().
  void follow();
  // Whether commands before the open link may still be running, so that one that cannot wait for
  // them needs a barrier whatever it touches.
  bool behind() const { return wait_ > 0; }
  // A dispatch joins the open link.
  ChainPush add(uint32_t groups);
  // A command joins that does not arrive. REQUIRES: !behind().
  void add_foreign() { foreign_ = true; }

 private:
  // The first place stays empty: a link looks at the one before its own.
  static constexpr uint64_t kLinks = kChainBytes / kChainStride - 1;

  uint64_t places_ = 0;
  uint64_t open_ = 0;
  uint32_t wait_ = 0;
  uint32_t arrivals_ = 0;  // of the open link
  uint32_t counted_ = 0;   // large dispatches of the open link
  bool foreign_ = true;    // before the first barrier the places are not clear, and nobody arrives
};

}  // namespace hearth
