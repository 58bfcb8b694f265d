// What a schema allows, type by type: two booleans and null, a language of numbers, one of strings,
// and any of several kinds of objects and arrays. Shapes are combined by `and` and `or`; `not` is
// pushed down to the keywords by SchemaCompiler. Subschemas stay references (nodes), so recursion
// is no concern here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/grammar/expression.h"

namespace hearth::grammar {

// A set of schemas and negated schemas that a value has to satisfy; see NodeTable.
using NodeId = std::uint32_t;
inline constexpr NodeId kAnyNode = 0;
inline constexpr NodeId kNoNode = 1;

// A schema or its negation.
struct Term {
  std::uint32_t schema = 0;
  bool negated = false;
  auto operator<=>(const Term&) const = default;
};

class NodeTable {
 public:
  NodeTable();
  NodeId of(Term term);
  NodeId both(NodeId a, NodeId b);
  const std::vector<Term>& terms(NodeId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  NodeId intern(std::vector<Term> terms);
  std::vector<std::vector<Term>> nodes_;
  std::map<std::vector<Term>, NodeId> ids_;
};

struct ObjectShape {
  struct Property {
    std::string name;
    NodeId value = kAnyNode;
    bool required = false;
  };
  // The rule of one schema for names that are not in `properties`.
  struct Group {
    std::vector<std::pair<ExprId, NodeId>> patterns;
    NodeId additional = kAnyNode;  // for names that no pattern matches
  };
  std::vector<Property> properties;
  std::unordered_map<std::string, std::size_t> index;  // of `properties`
  std::vector<Group> groups;
  // At least one name in the language, with a value of the node.
  struct Demand {
    ExprId names = kAnyText;
    NodeId value = kAnyNode;
  };
  std::vector<Demand> demands;
  ExprId names = kAnyText;  // all names match
  std::uint32_t min = 0, max = kUnbounded;

  Property& property(const std::string& name, NodeId value_if_new);
};

struct ArrayShape {
  struct Contains {
    NodeId value = kAnyNode;
    std::uint32_t min = 1, max = kUnbounded;
  };
  std::vector<NodeId> first;
  NodeId rest = kAnyNode;
  std::uint32_t min = 0, max = kUnbounded;
  std::vector<Contains> contains;
  bool unique = false;
};

struct Shape {
  bool null = false, no = false, yes = false;  // null, false, true
  ExprId number = kNothing, text = kNothing;
  std::vector<ObjectShape> objects;  // any of them
  std::vector<ArrayShape> arrays;    // any of them
};

}  // namespace hearth::grammar
