// What filters and methods on strings have in common.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/jinja/heap.h"
#include "engine/text/jinja/text_builder.h"

namespace hearth::jinja {

enum class Side : std::uint8_t { kLeft, kRight, kBoth };
// Python's strip(); `characters` none or missing: white space.
Value strip(Heap& heap, const Value& string, const Value& characters, Side side);
Value replace(Heap& heap, const Value& string, const Value& from, const Value& to,
              std::int64_t count);
Value to_upper(Heap& heap, const Value& string);
Value to_lower(Heap& heap, const Value& string);
Value capitalize(Heap& heap, const Value& string);
Value join(Heap& heap, const Value& separator, std::span<const Value> strings);
// Python's splitlines().
std::vector<Value> split_lines(Heap& heap, const Value& string, bool keep_ends = false);
// Fills up to `width` characters; what cannot be split evenly goes where Python puts it.
Value pad(Heap& heap, const Value& string, std::int64_t width, const Value& fill, Side side);

// Arguments of the wrong type are errors that name the function.
Value need_string(const Value& value, std::string_view callee);
std::int64_t need_integer(const Value& value, std::string_view callee);
// The standard where it was not given or is none.
std::int64_t integer_or(const Value& value, std::int64_t standard, std::string_view callee);

}  // namespace hearth::jinja
