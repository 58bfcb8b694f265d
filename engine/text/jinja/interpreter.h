// Runs the syntax of a template. One rendering per interpreter, one thread.
#pragma once

#include <ctime>
#include <span>
#include <string_view>

#include "engine/text/jinja/function.h"
#include "engine/text/jinja/heap.h"
#include "engine/text/jinja/syntax.h"
#include "engine/text/jinja/text_builder.h"

namespace hearth::jinja {

class Interpreter {
 public:
  // `now` is what strftime_now() tells.
  Interpreter(const Syntax& syntax, Heap& heap, std::time_t now);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void set_variable(std::string_view name, const Value& value);
  // Throws Failure; line() then tells where.
  Rendering run();
  std::uint32_t line() const { return line_; }

  // For filters and functions.
  Heap& heap() { return heap_; }
  Budget& budget() { return heap_.budget(); }
  std::time_t now() const { return now_; }
  Value call(const Value& function, const Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);
  Value method(const Builtin& builtin, const Value& self);

  // For loops.
  // Assigns the item to the loop's variables and asks the loop's condition.
  bool accepts(const Statement& loop, Scope* surroundings, const Value& item);
  // {{ loop(items) }} in a recursive loop: its text for other items.
  Value repeat_loop(const Statement& loop, Scope* surroundings, const Value& items, int depth);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Value evaluate_concat(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller = nullptr);
  Value evaluate_filter(const Expression& expression, const Value* input = nullptr);
  Value evaluate_test(const Expression& expression);
  // Evaluates the arguments and hands them to `use`, with a caller among them if there is one.
  template <class Use>
  Value with_arguments(const CallArguments& arguments, const Value* caller, Use use);

  Flow execute(std::span<const Statement* const> body);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement, Scope* surroundings, const Value& items, int depth);
  void execute_with(const Statement& statement);
  Value make_macro(const MacroSyntax& macro);
  Value call_macro(const Function& function, const Arguments& arguments);
  void write(const Value& value);
  // What the body writes, as a string.
  Value capture(std::span<const Statement* const> body, Flow& flow);

  Value* look_up(Name name);
  void assign(Name name, const Value& value);
  void assign(const Expression& target, const Value& value);
  Scope* open_scope(Scope* parent);

  const Syntax& syntax_;
  Heap& heap_;
  std::time_t now_;
  Scope* scope_ = nullptr;
  TextBuilder* out_ = nullptr;
  TextBuilder* root_ = nullptr;
  std::uint32_t line_ = 1;
};

}  // namespace hearth::jinja
