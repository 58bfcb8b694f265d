// Evaluates expressions.
#include <vector>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/arithmetic.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  using Form = Expression::Form;
  budget().step();
  const auto& items = expression.items;
  switch (expression.form) {
    case Form::kLiteral:
      return expression.literal;
    case Form::kName:
      return evaluate_name(expression);
    default:
      break;
  }
  const Nested nested(budget());
  switch (expression.form) {
    case Form::kLiteral:
    case Form::kName:
      break;
    case Form::kTuple:
    case Form::kList: {
      Value* const values = heap_.array<Value>(items.size());
      for (std::size_t i = 0; i < items.size(); ++i) values[i] = evaluate(*items[i]);
      return heap_.adopt(expression.form == Form::kTuple ? Kind::kTuple : Kind::kList,
                         {values, items.size()});
    }
    case Form::kDict:
      return evaluate_dict(expression);
    case Form::kAttribute: {
      const Value owner = evaluate(*items[0]);
      line_ = expression.line;
      return get_attribute(*this, owner, expression.text);
    }
    case Form::kItem: {
      const Value owner = evaluate(*items[0]);
      const Value key = evaluate(*items[1]);
      line_ = expression.line;
      return get_item(*this, owner, key);
    }
    case Form::kSlice:
      return evaluate_slice(expression);
    case Form::kCall:
      return evaluate_call(expression);
    case Form::kFilter:
      return evaluate_filter(expression);
    case Form::kTest:
      return evaluate_test(expression);
    case Form::kIf:
      if (is_true(evaluate(*items[1]))) return evaluate(*items[0]);
      if (items[2] != nullptr) return evaluate(*items[2]);
      return heap_.undefined(Undefined::Why::kHint,
                             "an inline if without else was false, and its value is needed");
    case Form::kAnd: {
      const Value left = evaluate(*items[0]);
      return is_true(left) ? evaluate(*items[1]) : left;
    }
    case Form::kOr: {
      const Value left = evaluate(*items[0]);
      return is_true(left) ? left : evaluate(*items[1]);
    }
    case Form::kNot:
      return Value::of(!is_true(evaluate(*items[0])));
    case Form::kNegative:
    case Form::kPositive: {
      const Value value = evaluate(*items[0]);
      line_ = expression.line;
      return expression.form == Form::kNegative ? negative(value) : positive(value);
    }
    case Form::kBinary: {
      const Value left = evaluate(*items[0]);
      const Value right = evaluate(*items[1]);
      line_ = expression.line;
      return calculate(heap_, expression.operators[0], left, right);
    }
    case Form::kConcat:
      return evaluate_concat(expression);
    case Form::kCompare:
      return evaluate_compare(expression);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expression& expression) {
  if (const Value* const found = look_up(expression.name)) return *found;
  line_ = expression.line;
  return heap_.undefined(Undefined::Why::kName, expression.text);
}

Value Interpreter::evaluate_dict(const Expression& expression) {
  const Value made = heap_.dict(expression.items.size() / 2);
  for (std::size_t i = 0; i < expression.items.size(); i += 2) {
    const Value key = evaluate(*expression.items[i]);
    const Value value = evaluate(*expression.items[i + 1]);
    line_ = expression.line;
    set(heap_, *made.dict, key, value);
  }
  return made;
}

Value Interpreter::evaluate_slice(const Expression& expression) {
  Value values[4];
  for (std::size_t i = 0; i < 4; ++i)
    if (expression.items[i] != nullptr) values[i] = evaluate(*expression.items[i]);
  line_ = expression.line;
  return get_slice(heap_, values[0], values[1], values[2], values[3]);
}

Value Interpreter::evaluate_concat(const Expression& expression) {
  TextBuilder out(heap_);
  for (const Expression* const item : expression.items) print(heap_, evaluate(*item), out);
  return out.finish();
}

Value Interpreter::evaluate_compare(const Expression& expression) {
  Value left = evaluate(*expression.items[0]);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    const Value right = evaluate(*expression.items[i + 1]);
    line_ = expression.line;
    bool holds = false;
    switch (expression.operators[i]) {
      case Operator::kEqual:
        holds = equal(heap_, left, right);
        break;
      case Operator::kNotEqual:
        holds = !equal(heap_, left, right);
        break;
      case Operator::kLess:
        holds = order(heap_, left, right, "<") < 0;
        break;
      case Operator::kLessEqual:
        holds = order(heap_, left, right, "<=") <= 0;
        break;
      case Operator::kGreater:
        holds = order(heap_, left, right, ">") > 0;
        break;
      case Operator::kGreaterEqual:
        holds = order(heap_, left, right, ">=") >= 0;
        break;
      default: {
        const bool is_in = contains(heap_, right, left);
        holds = is_in == (expression.operators[i] == Operator::kIn);
      }
    }
    if (!holds) return Value::of(false);
    left = right;
  }
  return Value::of(true);
}

template <class Use>
Value Interpreter::with_arguments(const CallArguments& arguments, const Value* caller, Use use) {
  std::vector<Value> positional;
  std::vector<NamedValue> named;
  positional.reserve(arguments.positional.size());
  for (const Expression* const item : arguments.positional) positional.push_back(evaluate(*item));
  for (const NamedExpression& item : arguments.named)
    named.push_back({item.name, evaluate(*item.value)});
  if (arguments.star != nullptr) {
    const auto more = iterate(heap_, evaluate(*arguments.star));
    budget().take_memory(more.size_bytes());
    budget().handle_bytes(more.size_bytes());
    positional.insert(positional.end(), more.begin(), more.end());
  }
  if (arguments.star_star != nullptr) {
    const Value more = evaluate(*arguments.star_star);
    if (!more.is(Kind::kDict)) fail("only a dict can follow '**' in a call");
    budget().take_memory(more.dict->size * sizeof(NamedValue));
    budget().handle_bytes(more.dict->size * sizeof(NamedValue));
    for (const Dict::Entry& entry : more.dict->all()) {
      if (!entry.key.is_string()) fail("the names of arguments must be strings");
      named.push_back({entry.key.view_text(), entry.value});
    }
  }
  if (caller != nullptr) named.push_back({"caller", *caller});
  return use(Arguments{positional, named});
}

Value Interpreter::evaluate_call(const Expression& expression, const Value* caller) {
  const Value function = evaluate(*expression.items[0]);
  return with_arguments(*expression.arguments, caller, [&](const Arguments& arguments) {
    line_ = expression.line;
    return call(function, arguments);
  });
}

Value Interpreter::evaluate_filter(const Expression& expression, const Value* input) {
  // The innermost filter of a block has no expression in front of it: it gets the block's text.
  Value value;
  if (expression.items[0] == nullptr) {
    value = *input;
  } else if (expression.items[0]->form == Expression::Form::kFilter) {
    const Nested nested(budget());
    value = evaluate_filter(*expression.items[0], input);
  } else {
    value = evaluate(*expression.items[0]);
  }
  if (expression.builtin == nullptr) {
    line_ = expression.line;
    fail(fmt::format("there is no filter '{}'", expression.text));
  }
  return with_arguments(*expression.arguments, nullptr, [&](const Arguments& arguments) {
    line_ = expression.line;
    return expression.builtin->run(*this, value, arguments);
  });
}

Value Interpreter::evaluate_test(const Expression& expression) {
  const Value value = evaluate(*expression.items[0]);
  if (expression.builtin == nullptr) {
    line_ = expression.line;
    fail(fmt::format("there is no test '{}'", expression.text));
  }
  return with_arguments(*expression.arguments, nullptr, [&](const Arguments& arguments) {
    line_ = expression.line;
    return expression.builtin->run(*this, value, arguments);
  });
}

}  // namespace hearth::jinja
