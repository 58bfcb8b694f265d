// Tokens proposed for one request's next step: a chain or, with parents, a tree. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

struct Proposal {
  std::vector<std::uint32_t> tokens;
  // The parent of each token, an index of an earlier one, or kNoParent after the newest committed
  // token. Empty for a chain.
  std::vector<std::uint32_t> parents;

  void clear() {
    tokens.clear();
    parents.clear();
  }
  bool empty() const { return tokens.empty(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens.size()); }

  // Adds a token to a tree and returns its index.
  std::uint32_t add(std::uint32_t token, std::uint32_t parent) {
    tokens.push_back(token);
    parents.push_back(parent);
    return size() - 1;
  }
  // The child of `parent` in a tree that is `token`, or kNoParent.
  std::uint32_t find(std::uint32_t token, std::uint32_t parent) const {
    for (std::uint32_t i = 0; i < size(); ++i)
      if (parents[i] == parent && tokens[i] == token) return i;
    return kNoParent;
  }
  // Drops parents that only say that this is a chain.
  void simplify() {
    for (std::uint32_t i = 0; i < parents.size(); ++i)
      if (parents[i] != (i == 0 ? kNoParent : i - 1)) return;
    parents.clear();
  }
};

}  // namespace hearth
