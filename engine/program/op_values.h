// Which values an op reads and writes.
#pragma once

#include <type_traits>

#include "engine/program/op.h"

namespace hearth {

// Calls read(value) and write(value) for the values of one kind of op. A value that is added to is
// both.
template <class T, class Read, class Write>
void visit_values(T& op, Read read, Write write) {
  using Kind = std::remove_const_t<T>;
  if constexpr (requires { op.x; }) read(op.x);
  if constexpr (std::is_same_v<Kind, AttentionOp>) read(op.q);
  if constexpr (std::is_same_v<Kind, AddOp> || std::is_same_v<Kind, SumOp> ||
                std::is_same_v<Kind, GatherOp> || std::is_same_v<Kind, JoinOp>)
    read(op.y);
  if constexpr (std::is_same_v<Kind, ExpertsOp>) {
    read(op.routed);
    read(op.y);
  }
  if constexpr (std::is_same_v<Kind, ProductOp>)
    if (op.adds) read(op.y);
  if constexpr (requires { op.y; }) write(op.y);
  if constexpr (std::is_same_v<Kind, RopeKvOp>) {
    read(op.qkv);
    write(op.q);
  }
}

// Replaces a value, both where it is read and where it is written.
inline void rename_value(Op& op, Value from, Value to) {
  const auto rename = [&](Value& value) {
    if (value == from) value = to;
  };
  std::visit([&](auto& what) { visit_values(what, rename, rename); }, op.what);
}

}  // namespace hearth
