#include "engine/text/jinja/builtins.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/text/jinja/budget.h"

namespace hearth::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Builtin*>;

Table table_of(std::initializer_list<std::span<const Builtin>> parts) {
  Table table;
  for (const std::span<const Builtin> part : parts)
    for (const Builtin& builtin : part) table.emplace(builtin.name, &builtin);
  return table;
}

// Names may come from data. No built-in has a longer one, and hashing a long name takes time.
constexpr std::size_t kMaxNameBytes = 32;

const Builtin* find_in(const Table& table, std::string_view name) {
  if (name.size() > kMaxNameBytes) return nullptr;
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

const Builtin* find_filter(std::string_view name) {
  static const Table table = table_of({text_filters(), sequence_filters(), value_filters()});
  return find_in(table, name);
}

const Builtin* find_test(std::string_view name) {
  static const Table table = table_of({tests()});
  return find_in(table, name);
}

const Builtin* find_method(const Value& value, std::string_view name) {
  if (value.is_string()) {
    static const Table table = table_of({string_methods(), string_questions()});
    return find_in(table, name);
  }
  for (const Builtin& builtin : container_methods(value.kind))
    if (builtin.name == name) return &builtin;
  return nullptr;
}

bool is_mutating_method(const Value& value, std::string_view name) {
  constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear",  "extend",  "insert",
                                                        "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                        "update"};
  const auto has = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return (value.is(Kind::kList) && has(kOfLists)) || (value.is(Kind::kDict) && has(kOfDicts));
}

void bind_arguments(std::string_view callee, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<Value> values) {
  if (arguments.positional.size() > names.size())
    fail(fmt::format("{}() takes at most {} arguments, {} were given", callee, names.size(),
                     arguments.positional.size()));
  std::ranges::copy(arguments.positional, values.begin());
  for (const NamedValue& named : arguments.named) {
    const auto found = std::ranges::find(names, named.name);
    if (found == names.end())
      fail(fmt::format("{}() has no argument '{}'", callee, excerpt(named.name)));
    Value& value = values[static_cast<std::size_t>(found - names.begin())];
    if (value.given()) fail(fmt::format("{}() got argument '{}' twice", callee, named.name));
    value = named.value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!values[i].given()) fail(fmt::format("{}() misses argument '{}'", callee, names[i]));
}

void bind_nothing(std::string_view callee, const Arguments& arguments) {
  bind_arguments(callee, arguments, {}, 0, {});
}

}  // namespace hearth::jinja
