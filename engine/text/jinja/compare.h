// Equality, order and membership as Python has them, and lookups in dicts.
#pragma once

#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

bool equal(Heap& heap, const Value& a, const Value& b);
// Negative, 0 or positive. Fails where Python has no order: `op` is named in the message.
int order(Heap& heap, const Value& a, const Value& b, std::string_view op = "<");
// Python's `item in container`.
bool contains(Heap& heap, const Value& container, const Value& item);

// A total order of everything that can be a key of a dict, with Python's equality. Fails for what
// cannot.
int key_order(Heap& heap, const Value& a, const Value& b);

// Null where the key is not there. Fails for keys that cannot be in a dict, such as lists.
Value* find(Heap& heap, Dict& dict, const Value& key);
// Null where the key is not there.
Value* find(Heap& heap, Dict& dict, std::string_view key);
// Adds the key or replaces its value.
void set(Heap& heap, Dict& dict, const Value& key, const Value& value);

}  // namespace hearth::jinja
