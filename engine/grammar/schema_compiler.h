// From a schema to rules. A schema's keywords become shapes (keywords_*.cpp), shapes of all nodes
// that can be reached become rules (schema_rules.cpp), and rules that no value can satisfy are
// removed. Throws Refusal for whatever cannot be enforced exactly.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "engine/grammar/decimal.h"
#include "engine/grammar/rules.h"
#include "engine/grammar/schema_document.h"
#include "engine/grammar/shape.h"

namespace hearth::grammar {

class SchemaCompiler {
 public:
  // Adds the rules to `data`.
  SchemaCompiler(SchemaDocument& document, GrammarData& data);
  // The rule of the document's root.
  RuleId compile();

 private:
  using ShapePointer = std::shared_ptr<const Shape>;
  struct StillOpen {};  // thrown while probing: the answer depends on a schema that is being read

  // schema_compiler.cpp: shapes of schemas and nodes.
  ShapePointer shape_of(Term term);
  Shape make_shape(Term term);
  ShapePointer node_shape(NodeId node);
  NodeId node_of(SchemaId schema, bool negated = false);
  Shape any_shape() const;
  Shape both(const Shape& a, const Shape& b, SchemaId at, std::string_view keyword);
  Shape either(Shape a, Shape b, SchemaId at, std::string_view keyword);
  bool both_objects(const ObjectShape& a, const ObjectShape& b, ObjectShape& out);
  bool both_arrays(const ArrayShape& a, const ArrayShape& b, ArrayShape& out);
  NodeId value_of(const ObjectShape& object, const std::string& name);
  // False only if it is certain that no value satisfies the shape or node.
  bool possible(const Shape& shape, int depth);
  bool possible_node(NodeId node, int depth);
  bool possible_object(const ObjectShape& object, int depth);
  void spend(std::size_t work);
  SchemaId subschema(SchemaId parent, const JsonValue& value, std::string_view keyword,
                     std::string_view name = {});
  [[noreturn]] void refuse(SchemaId id, std::string_view keyword, std::string_view reason) {
    document_.refuse(id, keyword, reason);
  }
  [[noreturn]] void refuse_invalid(SchemaId id, std::string_view keyword, std::string_view reason) {
    document_.refuse(id, keyword, reason, ErrorKind::kInvalid);
  }

  // Each part of a schema: the shape of the values that satisfy its keywords, or, negated, of those
  // that do not. Nothing if the schema has none of them.
  // keywords_scalar.cpp
  std::optional<Shape> type_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> enum_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> number_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> string_part(SchemaId id, const JsonValue& schema, bool negated);
  Shape constant(SchemaId id, const JsonValue& value, bool negated, std::string_view keyword);
  static constexpr std::uint32_t kFirstConstant = 0xFFFFFFF0u;
  NodeId constant_node(const JsonValue& value, bool negated);
  Decimal decimal(SchemaId id, const JsonValue& value, std::string_view keyword);
  ExprId with_decimals(std::size_t most);
  std::uint32_t count_value(SchemaId id, const JsonValue& value, std::string_view keyword);
  ExprId pattern(SchemaId id, std::string_view keyword, const std::string& text);
  // keywords_object.cpp
  std::optional<Shape> object_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> required_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> property_count_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> names_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> dependency_part(SchemaId id, const JsonValue& schema, bool negated);
  Shape only_object(ObjectShape object) const;
  Shape with_object(ObjectShape object) const;
  // keywords_array.cpp
  std::optional<Shape> items_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> item_count_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> contains_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> unique_part(SchemaId id, const JsonValue& schema, bool negated);
  Shape with_array(ArrayShape array) const;
  // keywords_logic.cpp
  std::optional<Shape> reference_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> all_of_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> any_of_part(SchemaId id, const JsonValue& schema, bool negated);
  // Of the values in `context`, which the schema's other keywords allow.
  std::optional<Shape> one_of_part(SchemaId id, const JsonValue& schema, bool negated,
                                   const Shape& context);
  std::optional<Shape> not_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> if_part(SchemaId id, const JsonValue& schema, bool negated);
  std::optional<Shape> refused_part(SchemaId id, const JsonValue& schema, bool negated);

  // schema_rules.cpp
  // A schema of the node, for messages.
  SchemaId place_of(NodeId node) const;
  LexemeId lexeme(Lexeme::Kind kind, ExprId expression);
  LexemeId literal(std::string_view text);
  LexemeId separator(std::string_view text);
  void make_rule(NodeId node);
  ExprId written_number(ExprId number);
  void make_object_rules(NodeId node, ObjectShape shape, ValueRule& value);
  bool make_object_rule(NodeId node, const ObjectShape& shape,
                        const std::vector<ObjectShape::Demand>& demanded, ObjectRule& rule);
  void find_other_names(NodeId owner, const ObjectShape& shape, ExprId others,
                        const std::function<void(ExprId, NodeId)>& found);
  bool make_array_rule(NodeId node, const ArrayShape& shape, ArrayRule& rule);
  void make_unique_rule(NodeId node, const ArrayShape& shape, ArrayRule& rule);
  RuleId reach(NodeId node);
  // empty_rules.cpp
  void remove_empty_rules();

  SchemaDocument& document_;
  GrammarData& data_;
  NodeTable nodes_;
  std::map<Term, ShapePointer> shapes_;
  std::set<Term> open_;  // being computed: a second visit is a cycle
  std::map<NodeId, ShapePointer> node_shapes_;
  std::map<std::pair<int, ExprId>, LexemeId> lexemes_;
  std::map<std::string, ExprId> patterns_;
  std::map<NodeId, bool> possible_;
  std::vector<NodeId> pending_;
  std::map<NodeId, RuleId> rules_;
  ExprId any_number_ = kNothing, plain_number_ = kNothing, integer_ = kNothing,
         fractional_ = kNothing, negative_zero_ = kNothing;
  // Numbers that the schema does not write in their shortest form: that form, and the schema's.
  std::map<std::u32string, std::u32string> spellings_;
  int probing_ = 0;
  std::map<std::uint32_t, const JsonValue*> constants_;  // by the number of the term
  std::size_t work_ = 0;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace hearth::grammar
