// The variable `loop`: walks over a loop's items, tests its condition as late as Jinja does, and
// answers loop.index, loop.last and so on.
#pragma once

#include <span>
#include <string_view>

#include "engine/text/jinja/interpreter.h"

namespace hearth::jinja {

class Loop {
 public:
  // `depth` is 0 for a loop that is not inside its own recursion.
  Loop(const Statement& statement, Scope* surroundings, std::span<const Value> items, int depth)
      : statement_(statement), surroundings_(surroundings), items_(items), depth_(depth) {}

  // Goes to the next item that the condition accepts; false at the end.
  bool advance(Interpreter& in);
  const Value& item() const { return current_; }
  // kMissing where there is no such attribute.
  Value attribute(Interpreter& in, const Value& self, std::string_view name);
  Value repeat(Interpreter& in, const Arguments& arguments);
  Value cycle(Interpreter& in, const Arguments& arguments);
  Value changed(Interpreter& in, const Arguments& arguments);

 private:
  // Makes sure that the next item, if there is one, is in next_.
  void look_ahead(Interpreter& in);
  // How many items there are in all; the condition is asked for every item that is left.
  std::int64_t length(Interpreter& in);

  const Statement& statement_;
  Scope* surroundings_;
  std::span<const Value> items_;  // what is left
  bool is_filtered_ = false;      // the condition was asked for all that is left
  Value previous_, current_, next_;
  std::int64_t index_ = -1;
  int depth_;
  Value last_changed_;
};

}  // namespace hearth::jinja
