#include "engine/grammar/shape.h"

#include <algorithm>

namespace hearth::grammar {

NodeTable::NodeTable() {
  intern({});
  // No schema has this number, so nothing else is called by it.
  intern({{0xFFFFFFFF, false}});
}

NodeId NodeTable::intern(std::vector<Term> terms) {
  const auto [at, added] = ids_.emplace(terms, static_cast<NodeId>(nodes_.size()));
  if (added) nodes_.push_back(std::move(terms));
  return at->second;
}

NodeId NodeTable::of(Term term) { return intern({term}); }

NodeId NodeTable::both(NodeId a, NodeId b) {
  if (a == kNoNode || b == kNoNode) return kNoNode;
  if (a == kAnyNode || a == b) return b;
  if (b == kAnyNode) return a;
  std::vector<Term> terms;
  std::set_union(nodes_[a].begin(), nodes_[a].end(), nodes_[b].begin(), nodes_[b].end(),
                 std::back_inserter(terms));
  for (std::size_t i = 0; i + 1 < terms.size(); ++i)
    if (terms[i].schema == terms[i + 1].schema) return kNoNode;  // S and not S
  return intern(std::move(terms));
}

ObjectShape::Property& ObjectShape::property(const std::string& name, NodeId value_if_new) {
  const auto [at, added] = index.emplace(name, properties.size());
  if (added) properties.push_back({name, value_if_new, false});
  return properties[at->second];
}

}  // namespace hearth::grammar
