// Reaching into values: attributes, items, slices, and walking over them. This is the sandbox: an
// attribute is an entry of the data or a method from the tables in builtins.h, and nothing else.
#pragma once

#include <optional>
#include <span>

#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

class Interpreter;

// `value.name`: methods first, then entries. Undefined where there is neither.
Value get_attribute(Interpreter& in, const Value& value, std::string_view name);
// `value[key]`: entries first, then methods. Undefined where there is neither.
Value get_item(Interpreter& in, const Value& value, const Value& key);
// The path "a.b.0", as the `attribute` parameter of filters has it; an integer is an index.
Value get_path(Interpreter& in, const Value& value, const Value& path);

// Python's value[begin:end:step]; none and missing values are left out.
Value get_slice(Heap& heap, const Value& value, const Value& begin, const Value& end,
                const Value& step);

// The values that a loop walks over. An iterator is used up by it. Fails where Python would.
std::span<const Value> iterate(Heap& heap, const Value& value);
// Python's len(); nothing where there is none.
std::optional<std::int64_t> length_of(Heap& heap, const Value& value);

// For callers that need a value: fails with the reason why it is undefined.
void fail_if_undefined(const Value& value);
std::string reason_of(const Undefined& undefined);

}  // namespace hearth::jinja
