// type, enum, const; the keywords of numbers and of strings.
#include <algorithm>

#include <fmt/format.h>

#include "engine/grammar/code_points.h"
#include "engine/grammar/formats.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {

std::optional<Shape> SchemaCompiler::type_part(SchemaId id, const JsonValue& schema, bool negated) {
  const JsonValue* const type = schema.find("type");
  if (type == nullptr) return std::nullopt;
  const JsonValue list{.kind = JsonValue::Kind::kArray, .items = {*type}};
  bool null = false, boolean = false, number = false, integer = false, text = false, object = false,
       array = false;
  for (const JsonValue& one : type->is_array() ? type->items : list.items) {
    if (!one.is_string()) refuse_invalid(id, "type", "expected the name of a type");
    const std::string& name = one.text;
    if (name == "any" && document_.draft() == Draft::k4) return std::nullopt;
    bool* const which = name == "null"      ? &null
                        : name == "boolean" ? &boolean
                        : name == "number"  ? &number
                        : name == "integer" ? &integer
                        : name == "string"  ? &text
                        : name == "object"  ? &object
                        : name == "array"   ? &array
                                            : nullptr;
    if (which == nullptr) refuse_invalid(id, "type", fmt::format("there is no type \"{}\"", name));
    *which = true;
  }
  Shape out;
  out.null = null != negated;
  out.yes = out.no = boolean != negated;
  if (text != negated) out.text = kAnyText;
  if (object != negated) out.objects.emplace_back();
  if (array != negated) out.arrays.emplace_back();
  if (!negated)
    out.number = number ? any_number_ : integer ? integer_ : kNothing;
  else if (!number)
    out.number = integer ? fractional_ : any_number_;
  return out;
}

// A value that equals `value`, or, negated, any that does not.
Shape SchemaCompiler::constant(SchemaId id, const JsonValue& value, bool negated,
                               std::string_view keyword) {
  Shape out = negated ? any_shape() : Shape{};
  ExpressionPool& pool = data_.pool;
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out.null = !negated;
      break;
    case JsonValue::Kind::kTrue:
      out.yes = !negated;
      break;
    case JsonValue::Kind::kFalse:
      out.no = !negated;
      break;
    case JsonValue::Kind::kString: {
      const ExprId text = pool.literal(value.text);
      out.text = negated ? pool.complement(text) : text;
      break;
    }
    case JsonValue::Kind::kNumber: {
      const Decimal number = decimal(id, value, keyword);
      if (negated) {
        const ExprId equals = pool.digits(compare_automaton(number, Relation::kEqual));
        out.number = pool.both(plain_number_, pool.complement(equals));
      } else {
        // As the schema spells it, and as others do. What is generated has one of these in the
        // end, see written_number(); which one depends on what else the schema says.
        const std::string shortest = number.text();
        std::vector<ExprId> spellings = {pool.literal(value.text), pool.literal(shortest)};
        if (number.is_integer() && !data_.generates)
          spellings.push_back(pool.literal(shortest + ".0"));
        if (shortest != value.text)
          spellings_.emplace(to_code_points(shortest), to_code_points(value.text));
        out.number = pool.either(std::move(spellings));
      }
      break;
    }
    case JsonValue::Kind::kArray: {
      if (negated) {
        // Shorter, longer, or some item differs.
        const auto size = static_cast<std::uint32_t>(value.items.size());
        out.arrays = {ArrayShape{.min = size + 1}};
        if (size > 0) out.arrays.push_back(ArrayShape{.max = size - 1});
        for (std::uint32_t i = 0; i < size; ++i) {
          ArrayShape differs{.min = i + 1};
          differs.first.assign(i, kAnyNode);
          differs.first.push_back(constant_node(value.items[i], true));
          out.arrays.push_back(std::move(differs));
        }
        break;
      }
      ArrayShape array;
      for (std::size_t i = 0; i < value.items.size(); ++i)
        array.first.push_back(constant_node(value.items[i], false));
      array.rest = kNoNode;
      array.min = array.max = static_cast<std::uint32_t>(value.items.size());
      out.arrays.push_back(std::move(array));
      break;
    }
    case JsonValue::Kind::kObject: {
      if (negated) {
        // Another name, one that is missing, or some value that differs.
        out.objects.clear();
        std::vector<std::u32string> names;
        for (const auto& [name, member] : value.members) {
          names.push_back(to_code_points(name));
          ObjectShape missing, differs;
          missing.property(name, kNoNode);
          differs.property(name, constant_node(member, true)).required = true;
          out.objects.push_back(std::move(missing));
          out.objects.push_back(std::move(differs));
        }
        ObjectShape more;
        more.demands.push_back(
            {names.empty() ? kAnyText : pool.complement(pool.one_of(std::move(names))), kAnyNode});
        out.objects.push_back(std::move(more));
        break;
      }
      ObjectShape object;
      for (const auto& [name, member] : value.members)
        object.property(name, constant_node(member, false)).required = true;
      object.groups.push_back({{}, kNoNode});
      out.objects.push_back(std::move(object));
      break;
    }
  }
  return out;
}

// A node for a value inside a constant.
NodeId SchemaCompiler::constant_node(const JsonValue& value, bool negated) {
  // Numbered from the top, where no schema is.
  const auto number = static_cast<std::uint32_t>(kFirstConstant - constants_.size());
  constants_[number] = &value;
  return nodes_.of({number, negated});
}

std::optional<Shape> SchemaCompiler::enum_part(SchemaId id, const JsonValue& schema, bool negated) {
  const JsonValue* const list = schema.find("enum");
  const JsonValue* const one = schema.find("const");
  std::optional<Shape> result;
  const auto join = [&](Shape shape) {
    if (!result)
      result = std::move(shape);
    else
      result = negated ? both(*result, shape, id, "enum")
                       : either(std::move(*result), std::move(shape), id, "enum");
  };
  if (list != nullptr) {
    if (!list->is_array()) refuse_invalid(id, "enum", "expected a list");
    // Strings together: there may be thousands.
    std::vector<std::u32string> texts;
    for (const JsonValue& value : list->items) {
      if (value.is_string())
        texts.push_back(to_code_points(value.text));
      else
        join(constant(id, value, negated, "enum"));
    }
    if (!texts.empty()) {
      const ExprId text = data_.pool.one_of(std::move(texts));
      Shape shape = negated ? any_shape() : Shape{};
      shape.text = negated ? data_.pool.complement(text) : text;
      join(std::move(shape));
    }
    if (!result) result = negated ? any_shape() : Shape{};
  }
  if (one == nullptr) return result;
  Shape single = constant(id, *one, negated, "const");
  if (!result) return single;
  return negated ? either(std::move(*result), std::move(single), id, "const")
                 : both(*result, single, id, "const");
}

Decimal SchemaCompiler::decimal(SchemaId id, const JsonValue& value, std::string_view keyword) {
  const auto number = value.is_number() ? parse_decimal(value.text) : std::nullopt;
  if (!number) refuse_invalid(id, keyword, "expected a number of at most a thousand digits");
  return *number;
}

std::uint32_t SchemaCompiler::count_value(SchemaId id, const JsonValue& value,
                                          std::string_view keyword) {
  const Decimal number = decimal(id, value, keyword);
  if (number.negative || !number.is_integer())
    refuse_invalid(id, keyword, "expected a whole number, not below zero");
  if (number.whole.size() > 9) return kUnbounded - 1;
  return static_cast<std::uint32_t>(std::stoul(number.whole));
}

// Numbers with at most this many decimals.
ExprId SchemaCompiler::with_decimals(std::size_t most) {
  if (most == 0) return integer_;
  return *parse_regex(data_.pool, fmt::format("-?[0-9]+(\\.[0-9]{{1,{}}})?", most),
                      RegexMatch::kFull);
}

std::optional<Shape> SchemaCompiler::number_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  ExpressionPool& pool = data_.pool;
  std::vector<ExprId> conditions;
  const auto bound = [&](const Decimal& limit, Relation relation, Relation opposite) {
    conditions.push_back(pool.digits(compare_automaton(limit, negated ? opposite : relation)));
  };
  const auto flag = [&](const char* name) {  // draft 4
    const JsonValue* const value = schema.find(name);
    return value != nullptr && value->kind == JsonValue::Kind::kTrue;
  };
  if (const JsonValue* const limit = schema.find("minimum")) {
    if (flag("exclusiveMinimum"))
      bound(decimal(id, *limit, "minimum"), Relation::kGreater, Relation::kLessOrEqual);
    else
      bound(decimal(id, *limit, "minimum"), Relation::kGreaterOrEqual, Relation::kLess);
  }
  if (const JsonValue* const limit = schema.find("maximum")) {
    if (flag("exclusiveMaximum"))
      bound(decimal(id, *limit, "maximum"), Relation::kLess, Relation::kGreaterOrEqual);
    else
      bound(decimal(id, *limit, "maximum"), Relation::kLessOrEqual, Relation::kGreater);
  }
  if (const JsonValue* const limit = schema.find("exclusiveMinimum"); limit && !limit->is_boolean())
    bound(decimal(id, *limit, "exclusiveMinimum"), Relation::kGreater, Relation::kLessOrEqual);
  if (const JsonValue* const limit = schema.find("exclusiveMaximum"); limit && !limit->is_boolean())
    bound(decimal(id, *limit, "exclusiveMaximum"), Relation::kLess, Relation::kGreaterOrEqual);
  if (const JsonValue* const divisor = schema.find("multipleOf")) {
    const Decimal step = decimal(id, *divisor, "multipleOf");
    auto automaton = multiple_automaton(step);
    if (!automaton)
      refuse(id, "multipleOf", "the divisor has too many digits, or is not above zero");
    const ExprId multiple = pool.digits(*std::move(automaton));
    conditions.push_back(negated ? pool.complement(multiple) : multiple);
    // Zeros after the last decimal that matters could continue for ever.
    if (data_.generates && !negated) conditions.push_back(with_decimals(step.fraction.size()));
  }
  if (conditions.empty()) return std::nullopt;
  if (negated) {
    Shape out;
    out.number = pool.both(plain_number_, pool.either(std::move(conditions)));
    return out;
  }
  Shape out = any_shape();
  conditions.push_back(plain_number_);
  out.number = pool.both(std::move(conditions));
  return out;
}

ExprId SchemaCompiler::pattern(SchemaId id, std::string_view keyword, const std::string& text) {
  const auto known = patterns_.find(text);
  if (known != patterns_.end()) return known->second;
  auto parsed = parse_regex(data_.pool, text, RegexMatch::kSearch);
  if (!parsed.ok()) document_.refuse(id, keyword, parsed.error().message, parsed.error().kind);
  return patterns_[text] = *parsed;
}

std::optional<Shape> SchemaCompiler::string_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  ExpressionPool& pool = data_.pool;
  std::vector<ExprId> conditions;
  const auto add = [&](ExprId condition) {
    conditions.push_back(negated ? pool.complement(condition) : condition);
  };
  const JsonValue* const min = schema.find("minLength");
  const JsonValue* const max = schema.find("maxLength");
  if (min != nullptr || max != nullptr) {
    const std::uint32_t least = min != nullptr ? count_value(id, *min, "minLength") : 0;
    const std::uint32_t most = max != nullptr ? count_value(id, *max, "maxLength") : kUnbounded;
    add(least > most ? kNothing : pool.repeat(pool.any_char(), least, most));
  }
  if (const JsonValue* const value = schema.find("pattern")) {
    if (!value->is_string()) refuse_invalid(id, "pattern", "expected a string");
    add(pattern(id, "pattern", value->text));
  }
  if (const JsonValue* const value = schema.find("format"); value && value->is_string()) {
    if (const char* const regex = format_pattern(value->text)) {
      // What a pattern is too strict about must not slip through a negation.
      if (negated && !format_is_exact(value->text)) refuse(id, "format", "inside a negation");
      const auto parsed = parse_regex(pool, regex, RegexMatch::kFull);
      add(*parsed);
    }
  }
  if (conditions.empty()) return std::nullopt;
  if (negated) {
    Shape out;
    out.text = pool.either(std::move(conditions));
    return out;
  }
  Shape out = any_shape();
  out.text = pool.both(std::move(conditions));
  return out;
}

}  // namespace hearth::grammar
