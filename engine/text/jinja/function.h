// What a template can call: a built-in function, a method bound to its value, or a macro; and the
// small objects that cycler() and joiner() make.
#pragma once

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/syntax.h"

namespace hearth::jinja {

// Variables by name. Scopes live on the heap of the rendering, since macros keep those they were
// defined in.
struct Scope {
  struct Slot {
    Name name = 0;
    Value value;
  };
  Scope* parent = nullptr;
  Slot* slots = nullptr;
  std::uint32_t size = 0, capacity = 0;
  bool captured = false;  // a macro keeps it, so a loop must not reuse it
};

struct Function {
  std::string_view name;
  BuiltinFunction run = nullptr;  // null: a macro
  Value self;                     // of a method
  const MacroSyntax* macro = nullptr;
  Scope* scope = nullptr;  // the macro's surroundings
};

struct Object {
  enum class Type : std::uint8_t { kCycler, kJoiner };
  Type type = Type::kCycler;
  std::span<const Value> items;  // of a cycler
  Value separator;               // of a joiner
  std::uint32_t at = 0;          // the cycler's place; 1 once the joiner was called
};

}  // namespace hearth::jinja
