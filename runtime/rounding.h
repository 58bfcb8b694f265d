// Integer division and rounding upwards. REQUIRES: the second argument is not 0.
#pragma once

#include <type_traits>

namespace hearth {

template <class T>
constexpr T divide_up(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
template <class T>
constexpr T round_up(T value, std::type_identity_t<T> unit) {
  return divide_up(value, unit) * unit;
}

}  // namespace hearth
