// Executes statements.
#include <utility>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/loop.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {

Interpreter::Flow Interpreter::execute(std::span<const Statement* const> body) {
  for (const Statement* const statement : body)
    if (const Flow flow = execute(*statement); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

void Interpreter::write(const Value& value) {
  print(heap_, value, *out_);
  if (root_->size() > budget().limits().output_bytes) fail("the template writes too much text");
}

Value Interpreter::capture(std::span<const Statement* const> body, Flow& flow) {
  TextBuilder out(heap_);
  TextBuilder* const outer = std::exchange(out_, &out);
  flow = execute(body);
  out_ = outer;
  return out.finish();
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  using Form = Statement::Form;
  budget().step();
  if (statement.form == Form::kText) {
    write(Value::borrowed(statement.text));
    return Flow::kNext;
  }
  line_ = statement.line;
  const Nested nested(budget());
  switch (statement.form) {
    case Form::kText:
      break;
    case Form::kOutput:
      write(evaluate(*statement.value));
      break;
    case Form::kIf:
      return execute_if(statement);
    case Form::kFor:
      return execute_for(statement, scope_, evaluate(*statement.value), 0);
    case Form::kBreak:
      return Flow::kBreak;
    case Form::kContinue:
      return Flow::kContinue;
    case Form::kSet:
      assign(*statement.target, evaluate(*statement.value));
      break;
    case Form::kSetBlock:
    case Form::kFilter: {
      // The body has a scope of its own.
      Scope* const outer = std::exchange(scope_, open_scope(scope_));
      Flow flow = Flow::kNext;
      Value text = capture(statement.body, flow);
      scope_ = outer;
      if (flow != Flow::kNext) return flow;
      if (statement.value != nullptr) text = evaluate_filter(*statement.value, &text);
      if (statement.form == Form::kFilter) {
        write(text);
      } else {
        assign(*statement.target, text);
      }
      break;
    }
    case Form::kWith: {
      Scope* const outer = scope_;
      execute_with(statement);
      const Flow flow = execute(statement.body);
      scope_ = outer;
      return flow;
    }
    case Form::kMacro:
      assign(*statement.target, make_macro(*statement.macro));
      break;
    case Form::kCall: {
      const Value caller = make_macro(*statement.macro);
      write(evaluate_call(*statement.value, &caller));
      break;
    }
    case Form::kGroup:
      return execute(statement.body);
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (const Statement* now = &statement;;) {
    if (is_true(evaluate(*now->value))) return execute(now->body);
    // An elif is an if alone in the else.
    const bool is_elif =
        now->otherwise.size() == 1 && now->otherwise[0]->form == Statement::Form::kIf;
    if (!is_elif) return execute(now->otherwise);
    now = now->otherwise[0];
    budget().step();
  }
}

void Interpreter::execute_with(const Statement& statement) {
  std::vector<Value> values;
  for (const Expression* const value : statement.values) values.push_back(evaluate(*value));
  scope_ = open_scope(scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(*statement.targets[i], values[i]);
}

Interpreter::Flow Interpreter::execute_for(const Statement& statement, Scope* surroundings,
                                           const Value& items, int depth) {
  line_ = statement.line;
  Value loop = Value::of(Kind::kLoop);
  loop.loop = heap_.make(Loop(statement, surroundings, iterate(heap_, items), depth));
  Scope* const outer = scope_;
  Scope* scope = nullptr;
  bool any = false;
  while (loop.loop->advance(*this)) {
    any = true;
    budget().step();
    // Every turn starts with a clean scope; a new one only where a macro keeps the last.
    if (scope == nullptr || scope->captured) scope = open_scope(surroundings);
    scope->size = 0;
    scope_ = scope;
    assign(kLoopName, loop);
    assign(*statement.target, loop.loop->item());
    const Flow flow = execute(statement.body);
    scope_ = outer;
    if (flow == Flow::kBreak) break;
  }
  if (any) return Flow::kNext;
  // The else is outside the loop: a break or continue in it belongs to the loop around this one.
  scope_ = open_scope(surroundings);
  const Flow flow = execute(statement.otherwise);
  scope_ = outer;
  return flow;
}

bool Interpreter::accepts(const Statement& loop, Scope* surroundings, const Value& item) {
  budget().step();
  Scope* const outer = std::exchange(scope_, open_scope(surroundings));
  assign(*loop.target, item);
  const bool accepted = is_true(evaluate(*loop.condition));
  scope_ = outer;
  return accepted;
}

Value Interpreter::repeat_loop(const Statement& loop, Scope* surroundings, const Value& items,
                               int depth) {
  const Nested nested(budget());
  const std::uint32_t line = line_;
  TextBuilder out(heap_);
  TextBuilder* const outer = std::exchange(out_, &out);
  execute_for(loop, surroundings, items, depth);
  out_ = outer;
  line_ = line;
  return out.finish();
}

}  // namespace hearth::jinja
