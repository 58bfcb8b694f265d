#include "engine/text/jinja/arithmetic.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {
namespace {

std::string_view spelling(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    default:
      return "**";
  }
}

[[noreturn]] void wrong_types(Operator op, const Value& left, const Value& right) {
  fail_if_undefined(left);
  fail_if_undefined(right);
  if (op == Operator::kAdd && (left.is_string() || left.is_sequence()))
    fail(fmt::format("can only concatenate {0} (not \"{1}\") to {0}", type_name(left),
                     type_name(right)));
  fail(fmt::format("unsupported operand types for {}: '{}' and '{}'", spelling(op), type_name(left),
                   type_name(right)));
}

[[noreturn]] void too_large() { fail("a number is too large"); }

Value power(const Value& left, const Value& right, bool input) {
  if (left.is_integer() && right.is_integer() && right.as_integer() >= 0) {
    std::int64_t result = 1, base = left.as_integer();
    for (std::int64_t left_over = right.as_integer(); left_over > 0; left_over /= 2) {
      if (left_over % 2 == 1 && __builtin_mul_overflow(result, base, &result)) too_large();
      if (left_over > 1 && __builtin_mul_overflow(base, base, &base)) too_large();
    }
    return Value::of(result, input);
  }
  if (left.as_number() == 0 && right.as_number() < 0) fail("division by zero");
  const double result = std::pow(left.as_number(), right.as_number());
  if (std::isnan(result) && !std::isnan(left.as_number()) && !std::isnan(right.as_number()))
    fail("complex numbers are not supported");
  if (std::isinf(result) && std::isfinite(left.as_number()) && std::isfinite(right.as_number()))
    too_large();
  return Value::of(result, input);
}

Value integers(Operator op, std::int64_t a, std::int64_t b, bool input) {
  std::int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      break;
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      break;
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      break;
    default: {  // // and %
      if (b == 0) fail("division by zero");
      if (b == -1) {  // the one division that can overflow
        if (op == Operator::kFloorDivide && __builtin_sub_overflow(std::int64_t{0}, a, &result))
          too_large();
        break;
      }
      const std::int64_t remainder = a % b;
      const bool rounds_up = remainder != 0 && (remainder < 0) != (b < 0);
      result =
          op == Operator::kModulo ? remainder + (rounds_up ? b : 0) : a / b - (rounds_up ? 1 : 0);
    }
  }
  return Value::of(result, input);
}

Value floats(Operator op, double a, double b, bool input) {
  switch (op) {
    case Operator::kAdd:
      return Value::of(a + b, input);
    case Operator::kSubtract:
      return Value::of(a - b, input);
    case Operator::kMultiply:
      return Value::of(a * b, input);
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return Value::of(a / b, input);
    default:
      break;
  }
  if (b == 0) fail("division by zero");
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == Operator::kModulo) return Value::of(remainder, input);
  return Value::of(std::floor((a - remainder) / b + 0.5), input);
}

Value add_strings(Heap& heap, const Value& left, const Value& right) {
  TextBuilder out(heap);
  const bool markup = left.markup || right.markup;
  out.append(markup && !left.markup ? escaped(heap, left) : left);
  out.append(markup && !right.markup ? escaped(heap, right) : right);
  Value result = out.finish();
  result.markup = markup;
  return result;
}

Value add_sequences(Heap& heap, const Value& left, const Value& right) {
  const std::size_t size = std::size_t{left.list->size} + right.list->size;
  Value* const items = heap.array<Value>(size);
  std::copy_n(left.list->items, left.list->size, items);
  std::copy_n(right.list->items, right.list->size, items + left.list->size);
  return heap.adopt(left.kind, {items, size});
}

Value repeat(Heap& heap, const Value& value, std::int64_t times) {
  if (value.is_string()) {
    TextBuilder out(heap);
    for (std::int64_t i = 0; value.size > 0 && i < times; ++i) out.append(value);
    Value result = out.finish();
    result.markup = value.markup;
    return result;
  }
  const auto count = static_cast<std::uint64_t>(times < 0 ? 0 : times);
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{value.list->size}, &size)) too_large();
  Value* const items = heap.array<Value>(size);
  for (std::uint64_t at = 0; at < size; at += value.list->size)
    std::copy_n(value.list->items, value.list->size, items + at);
  return heap.adopt(value.kind, {items, static_cast<std::size_t>(size)});
}

}  // namespace

Value calculate(Heap& heap, Operator op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    const bool input = left.input || right.input;
    if (op == Operator::kPower) return power(left, right, input);
    if (left.is_integer() && right.is_integer() && op != Operator::kDivide)
      return integers(op, left.as_integer(), right.as_integer(), input);
    return floats(op, left.as_number(), right.as_number(), input);
  }
  switch (op) {
    case Operator::kAdd:
      if (left.is_string() && right.is_string()) return add_strings(heap, left, right);
      if (left.is_sequence() && left.kind == right.kind) return add_sequences(heap, left, right);
      break;
    case Operator::kMultiply: {
      const auto repeats = [](const Value& v) { return v.is_string() || v.is_sequence(); };
      if (repeats(left) && right.is_integer()) return repeat(heap, left, right.as_integer());
      if (repeats(right) && left.is_integer()) return repeat(heap, right, left.as_integer());
      break;
    }
    case Operator::kModulo:
      if (left.is_string()) return format_percent(heap, left, right);
      break;
    default:
      break;
  }
  wrong_types(op, left, right);
}

Value negative(const Value& value) {
  fail_if_undefined(value);
  if (value.is(Kind::kFloat)) return Value::of(-value.number, value.input);
  if (!value.is_integer())
    fail(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  return integers(Operator::kSubtract, 0, value.as_integer(), value.input);
}

Value positive(const Value& value) {
  fail_if_undefined(value);
  if (!value.is_number()) fail(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  return value.is(Kind::kBool) ? Value::of(value.as_integer()) : value;
}

}  // namespace hearth::jinja
