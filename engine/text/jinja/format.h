// Python's two ways to format: "%s" % values and "{}".format(values).
#pragma once

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

// `values` is one value, a tuple of them, or a dict for %(name)s.
Value format_percent(Heap& heap, const Value& pattern, const Value& values);
Value format_braces(Interpreter& in, const Value& pattern, const Arguments& arguments);

}  // namespace hearth::jinja
