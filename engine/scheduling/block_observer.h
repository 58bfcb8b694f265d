// Learns which blocks can be found in the prefix cache: every change of that set, in order. Whoever
// follows all calls knows the set exactly. Called on the engine thread while a step is planned, so
// an observer must return quickly and must not wait for anyone.
#pragma once

#include <span>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/prefix_cache.h"

namespace hearth {

class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // A full block can be found from now on. `parent` is the hash of the block before it, or the
  // root_hash() of the request's salt if it is the first.
  virtual void stored(const BlockHash& hash, const BlockHash& parent,
                      std::span<const TokenId, kTokensPerBlock> tokens) = 0;
  // It cannot be found any more: it was evicted, or its contents change.
  virtual void removed(const BlockHash& hash) = 0;
  // No block can be found any more.
  virtual void cleared() = 0;
};

}  // namespace hearth
