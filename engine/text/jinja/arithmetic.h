// The operators, as Python has them. Integers have 64 bits; what does not fit is an error.
#pragma once

#include "engine/text/jinja/heap.h"
#include "engine/text/jinja/syntax.h"

namespace hearth::jinja {

Value calculate(Heap& heap, Operator op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);

}  // namespace hearth::jinja
