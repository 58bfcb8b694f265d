// Values of a running template. They are small, copied freely, and point into the Heap of one
// rendering, which frees everything at its end; there is no reference counting and no destructor,
// so cycles and deep nesting need no care. Only namespaces, iterators and loops change after
// creation: lists and dicts are immutable, as in the sandbox that transformers uses.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/text/jinja/rendering.h"

namespace hearth::jinja {

enum class Kind : std::uint8_t {
  kMissing,  // no value at all: an argument that was not given. Templates never see it.
  kUndefined,
  kNone,
  kBool,
  kInt,  // 64 bits; what overflows is an error
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kIterator,  // what map, select and the like return: can be walked once, has no length
  kView,      // dict.keys(), values(), items()
  kRange,
  kFunction,  // built-in functions, bound methods, macros
  kLoop,      // the variable `loop`
  kObject,    // what cycler() and joiner() return
};

// Which bytes of a string come from where. A null pointer in a Value: all from the template.
struct Marks {
  const Run* runs = nullptr;
  std::uint32_t count = 0;
};
extern const Marks kAllInput;  // compared by address; its runs are not used

struct List;
struct Dict;
struct Iterator;
struct View;
struct Range;
struct Undefined;
struct Function;
struct Object;
class Loop;

struct Value {
  Kind kind = Kind::kMissing;
  bool input = false;      // of a scalar: it comes from the caller's data
  bool markup = false;     // of a string: marked `safe`, so `+` escapes what it is joined with
  std::uint32_t size = 0;  // of a string, in bytes
  union {
    bool boolean;
    std::int64_t integer = 0;
    double number;
    const char* text;
    const List* list;
    Dict* dict;  // of a kNamespace too
    Iterator* iterator;
    const View* view;
    const Range* range;
    const Undefined* undefined;
    const Function* function;
    Loop* loop;
    Object* object;
  };
  const Marks* marks = nullptr;  // of a string

  static Value none() { return of(Kind::kNone); }
  static Value of(Kind kind) {
    Value value;
    value.kind = kind;
    return value;
  }
  static Value of(bool boolean) {
    Value value = of(Kind::kBool);
    value.boolean = boolean;
    return value;
  }
  static Value of(std::int64_t integer, bool input = false) {
    Value value = of(Kind::kInt);
    value.integer = integer;
    value.input = input;
    return value;
  }
  static Value of(double number, bool input = false) {
    Value value = of(Kind::kFloat);
    value.number = number;
    value.input = input;
    return value;
  }
  // Keeps the view: `text` must outlive the rendering, as literals of C++ and syntax do.
  static Value borrowed(std::string_view text, Origin origin = Origin::kTemplate) {
    Value value = of(Kind::kString);
    value.text = text.data();
    value.size = static_cast<std::uint32_t>(text.size());
    value.marks = origin == Origin::kInput ? &kAllInput : nullptr;
    return value;
  }

  bool is(Kind other) const { return kind == other; }
  bool given() const { return kind != Kind::kMissing; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_integer() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool is_number() const { return is_integer() || kind == Kind::kFloat; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  // REQUIRES: is_string()
  std::string_view view_text() const { return {text, size}; }
  // REQUIRES: is_integer()
  std::int64_t as_integer() const { return kind == Kind::kBool ? boolean : integer; }
  // REQUIRES: is_number()
  double as_number() const {
    return kind == Kind::kFloat ? number : static_cast<double>(as_integer());
  }
  // Whether any part of it comes from input. Containers answer for themselves only: false.
  bool has_input() const { return kind == Kind::kString ? marks != nullptr : input; }
};

struct List {
  const Value* items = nullptr;
  std::uint32_t size = 0;
  bool is_group = false;  // a pair made by groupby, with attributes `grouper` and `list`

  std::span<const Value> all() const { return {items, size}; }
};

// Keeps the order of insertion. Above a few entries it is searched through an index sorted by key,
// so no choice of keys makes lookups slow.
struct Dict {
  struct Entry {
    Value key, value;
  };
  Entry* entries = nullptr;
  std::uint32_t size = 0, capacity = 0;
  std::uint32_t* order = nullptr;  // of the first `ordered` entries
  std::uint32_t ordered = 0;

  std::span<Entry> all() const { return {entries, size}; }
};

struct Iterator {
  std::span<const Value> left;
  std::string_view type;  // as Python names it
};

struct View {
  enum class Part : std::uint8_t { kKeys, kValues, kItems };
  Part part = Part::kKeys;
  const Dict* dict = nullptr;
};

struct Range {
  std::int64_t start = 0, stop = 0, step = 1, count = 0;

  Value at(std::int64_t i) const { return Value::of(start + i * step); }
};

// Why there is no value: said when someone needs it.
struct Undefined {
  enum class Why : std::uint8_t {
    kName,       // a variable `name`
    kAttribute,  // `type` has no attribute `name`
    kElement,    // `type` has no element `name`
    kUnsafe,     // `name` would change a value of `type`, or reach behind it
    kHint,       // `name` is the whole reason
  };
  Why why = Why::kName;
  std::string_view name, type;
};

// Named as Python names its types: 'str', 'dict', 'NoneType'.
std::string_view type_name(const Value& value);
// Python's bool(value).
bool is_true(const Value& value);

}  // namespace hearth::jinja
