// A parsed template: plain data, owned by Syntax, immutable after parsing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/jinja/value.h"

namespace hearth::jinja {

struct Builtin;  // builtins.h
struct Expression;
struct Statement;

// Variable names are numbered, so that scopes compare numbers.
using Name = std::uint32_t;
enum SpecialName : Name { kLoopName, kCallerName, kVarargsName, kKwargsName };

enum class Operator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct NamedExpression {
  std::string_view name;
  const Expression* value = nullptr;
};

struct CallArguments {
  std::vector<const Expression*> positional;
  std::vector<NamedExpression> named;
  const Expression* star = nullptr;       // *list
  const Expression* star_star = nullptr;  // **dict
};

struct Expression {
  enum class Form : std::uint8_t {
    kLiteral,
    kName,
    kTuple,
    kList,
    kDict,       // key, value, key, value, ...
    kAttribute,  // item 0 . text
    kItem,       // item 0 [ item 1 ]
    kSlice,      // item 0 [ item 1 : item 2 : item 3 ], the last three may be null
    kCall,       // item 0 ( arguments )
    kFilter,     // item 0 | builtin(arguments); item 0 is null in a filter block
    kTest,       // item 0 is builtin(arguments)
    kIf,         // item 0 if item 1 else item 2, which may be null
    kAnd,
    kOr,
    kNot,
    kNegative,
    kPositive,
    kBinary,   // item 0 operators[0] item 1
    kConcat,   // items joined by ~
    kCompare,  // item 0 operators[0] item 1 operators[1] item 2 ...
  };
  Form form = Form::kLiteral;
  std::uint32_t line = 1;
  std::uint32_t depth = 1;  // of the tree below it
  Name name = 0;
  std::string_view text;  // of an attribute, filter or test: its name
  Value literal;
  const Builtin* builtin = nullptr;  // null: no filter or test has this name
  std::vector<const Expression*> items;
  std::vector<Operator> operators;
  std::unique_ptr<CallArguments> arguments;
};

struct MacroSyntax {
  struct Parameter {
    std::string_view text;
    Name name = 0;
    const Expression* standard = nullptr;  // null: undefined unless given
  };
  std::string_view name;  // empty: the body of a call block
  std::vector<Parameter> parameters;
  std::vector<const Statement*> body;
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
};

struct Statement {
  enum class Form : std::uint8_t {
    kText,
    kOutput,  // value
    kIf,      // value, body, otherwise
    kFor,     // target in value if condition, body, otherwise
    kBreak,
    kContinue,
    kSet,       // target = value
    kSetBlock,  // target = body, through the filters of value if there are any
    kWith,      // targets = values, body
    kMacro,     // target
    kCall,      // value is the call, macro its caller
    kFilter,    // value is the filter, body
    kGroup,     // body: {% generation %}
  };
  Form form = Form::kText;
  std::uint32_t line = 1;
  std::string_view text;
  const Expression* value = nullptr;
  const Expression* target = nullptr;  // kName, kTuple, or kAttribute of a namespace
  const Expression* condition = nullptr;
  bool is_recursive = false;
  std::vector<const Expression*> targets, values;
  std::vector<const Statement*> body, otherwise;
  std::unique_ptr<MacroSyntax> macro;
};

struct Syntax {
  std::string source;
  std::deque<std::string> strings;  // literals that are not in the source as they are
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  std::vector<std::string_view> names;  // by Name
  std::unordered_map<std::string_view, Name> name_ids;
  std::vector<const Statement*> body;
};

}  // namespace hearth::jinja
