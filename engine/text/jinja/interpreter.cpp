// Names, scopes and calls. Expressions and statements have files of their own.
#include "engine/text/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/loop.h"

namespace hearth::jinja {

Interpreter::Interpreter(const Syntax& syntax, Heap& heap, std::time_t now)
    : syntax_(syntax), heap_(heap), now_(now) {
  scope_ = open_scope(nullptr);
  for (const Builtin& builtin : globals()) {
    Value value = Value::of(Kind::kFunction);
    value.function = heap_.make(Function{.name = builtin.name, .run = builtin.run});
    set_variable(builtin.name, value);
  }
}

void Interpreter::set_variable(std::string_view name, const Value& value) {
  const auto found = syntax_.name_ids.find(name);
  if (found != syntax_.name_ids.end()) assign(found->second, value);  // otherwise not used
}

Rendering Interpreter::run() {
  TextBuilder out(heap_);
  out_ = root_ = &out;
  // Variables of the caller stay apart from those the template sets.
  scope_ = open_scope(scope_);
  execute(syntax_.body);
  return out.take();
}

Scope* Interpreter::open_scope(Scope* parent) { return heap_.make(Scope{.parent = parent}); }

Value* Interpreter::look_up(Name name) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    budget().step(1 + scope->size / 32);
    for (std::uint32_t i = 0; i < scope->size; ++i)
      if (scope->slots[i].name == name) return &scope->slots[i].value;
  }
  return nullptr;
}

void Interpreter::assign(Name name, const Value& value) {
  Scope& scope = *scope_;
  budget().step(1 + scope.size / 32);
  for (std::uint32_t i = 0; i < scope.size; ++i) {
    if (scope.slots[i].name != name) continue;
    scope.slots[i].value = value;
    return;
  }
  if (scope.size == scope.capacity) {
    const std::uint32_t capacity = std::max<std::uint32_t>(4, scope.capacity * 2);
    auto* const grown = heap_.array<Scope::Slot>(capacity);
    std::copy_n(scope.slots, scope.size, grown);
    scope.slots = grown;
    scope.capacity = capacity;
  }
  scope.slots[scope.size++] = {name, value};
}

void Interpreter::assign(const Expression& target, const Value& value) {
  switch (target.form) {
    case Expression::Form::kName:
      return assign(target.name, value);
    case Expression::Form::kAttribute: {
      const Value owner = evaluate(*target.items[0]);
      line_ = target.line;
      if (!owner.is(Kind::kNamespace)) fail("attributes can only be set on namespaces");
      return set(heap_, *owner.dict, Value::borrowed(target.text), value);
    }
    default:
      break;
  }
  const std::span<const Value> values = iterate(heap_, value);
  line_ = target.line;
  if (values.size() != target.items.size())
    fail(fmt::format("cannot unpack {} values into {} names", values.size(), target.items.size()));
  for (std::size_t i = 0; i < values.size(); ++i) assign(*target.items[i], values[i]);
}

Value Interpreter::method(const Builtin& builtin, const Value& self) {
  Value value = Value::of(Kind::kFunction);
  value.function = heap_.make(Function{.name = builtin.name, .run = builtin.run, .self = self});
  return value;
}

Value Interpreter::call(const Value& function, const Arguments& arguments) {
  fail_if_undefined(function);
  switch (function.kind) {
    case Kind::kFunction:
      if (function.function->macro != nullptr) return call_macro(*function.function, arguments);
      return function.function->run(*this, function.function->self, arguments);
    case Kind::kLoop:
      return function.loop->repeat(*this, arguments);
    case Kind::kObject:
      if (function.object->type == Object::Type::kJoiner) {
        bind_nothing("joiner", arguments);
        return std::exchange(function.object->at, 1u) == 0 ? Value::borrowed("")
                                                           : function.object->separator;
      }
      break;
    default:
      break;
  }
  fail(fmt::format("'{}' object is not callable", type_name(function)));
}

Value Interpreter::apply_filter(std::string_view name, const Value& value,
                                const Arguments& arguments) {
  budget().step();
  const Builtin* const filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("there is no filter '{}'", excerpt(name)));
  return filter->run(*this, value, arguments);
}

bool Interpreter::apply_test(std::string_view name, const Value& value,
                             const Arguments& arguments) {
  budget().step();
  const Builtin* const test = find_test(name);
  if (test == nullptr) fail(fmt::format("there is no test '{}'", excerpt(name)));
  return is_true(test->run(*this, value, arguments));
}

Value Interpreter::make_macro(const MacroSyntax& macro) {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent)
    scope->captured = true;
  Value value = Value::of(Kind::kFunction);
  value.function = heap_.make(Function{
      .name = macro.name.empty() ? "caller" : macro.name, .macro = &macro, .scope = scope_});
  return value;
}

Value Interpreter::call_macro(const Function& function, const Arguments& arguments) {
  const Nested nested(budget());
  const MacroSyntax& macro = *function.macro;
  const std::size_t count = macro.parameters.size();
  Scope* const caller_scope = std::exchange(scope_, open_scope(function.scope));
  const std::uint32_t caller_line = line_;

  // By place, then by name. What is left goes to varargs and kwargs if the macro uses them.
  const std::span<Value> values(heap_.array<Value>(count), count);
  std::ranges::fill(values, Value());
  const std::size_t placed = std::min(count, arguments.positional.size());
  std::copy_n(arguments.positional.begin(), placed, values.begin());
  if (arguments.positional.size() > count && !macro.takes_varargs)
    fail(fmt::format("macro '{}' takes not more than {} arguments", function.name, count));
  if (macro.takes_varargs) assign(kVarargsName, heap_.tuple(arguments.positional.subspan(placed)));
  const Value left = heap_.dict();
  Value caller;
  for (const NamedValue& named : arguments.named) {
    budget().step(1 + count / 16);
    const auto found =
        std::ranges::find(macro.parameters, named.name, &MacroSyntax::Parameter::text);
    if (found != macro.parameters.end()) {
      Value& value = values[static_cast<std::size_t>(found - macro.parameters.begin())];
      if (value.given())
        fail(fmt::format("macro '{}' got argument '{}' twice", function.name, excerpt(named.name)));
      value = named.value;
    } else if (named.name == "caller") {
      caller = named.value;
    } else if (macro.takes_kwargs) {
      set(heap_, *left.dict, Value::borrowed(named.name), named.value);
    } else {
      fail(fmt::format("macro '{}' has no argument '{}'", function.name, excerpt(named.name)));
    }
  }
  if (macro.takes_kwargs) assign(kKwargsName, left);
  if (caller.given() && !macro.takes_caller)
    fail(fmt::format("macro '{}' was called with a block but does not use it", function.name));
  if (macro.takes_caller)
    assign(kCallerName,
           caller.given() ? caller : heap_.undefined(Undefined::Why::kHint, "no caller defined"));
  for (std::size_t i = 0; i < count; ++i) {
    const MacroSyntax::Parameter& parameter = macro.parameters[i];
    if (!values[i].given() && parameter.standard != nullptr)
      values[i] = evaluate(*parameter.standard);
    assign(parameter.name,
           values[i].given() ? values[i] : heap_.undefined(Undefined::Why::kName, parameter.text));
  }
  Flow flow = Flow::kNext;
  const Value text = capture(macro.body, flow);
  scope_ = caller_scope;
  line_ = caller_line;
  return text;
}

}  // namespace hearth::jinja
