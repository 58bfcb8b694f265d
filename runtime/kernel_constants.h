// Specialization constants of a kernel: their values, in the order of their ids, and their names,
// as declared in shaders/params/<kernel>.h. A value is made from the declared struct:
//
//   const KernelConstants constants =
//       params::RmsNormConstants{.kWorkgroupSize = 256, .kResiduals = 1};
//
// From then on constants are known by name, so that code for several kernels, such as all products,
// need not know which of them it has. Values compare by their words; the names follow from the
// kernel.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/interop.h"

namespace hearth {

// A struct that HEARTH_CONSTANTS declared.
template <class T>
concept DeclaredConstants = requires {
  T::template declared<T>(params::ConstantId<0>{});
}
&&std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint32_t) == 0;

class KernelConstants {
 public:
  KernelConstants() = default;
  template <DeclaredConstants T>
  KernelConstants(const T& values);
  // For tools that get constants as numbers. No constant has a name.
  static KernelConstants unnamed(std::vector<uint32_t> words) {
    KernelConstants constants;
    constants.words_ = std::move(words);
    return constants;
  }

  // Sets a constant. If it is an optional one, those before it that were never set get their
  // defaults. A name that the kernel does not have is remembered: no pipeline is made with it.
  void set(std::string_view name, uint32_t value);
  void set(std::string_view name, float value) { set(name, std::bit_cast<uint32_t>(value)); }

  // Whether the kernel has a constant of this name, and its value. REQUIRES for the latter: it has.
  bool has(std::string_view name) const { return index_of(name).has_value(); }
  uint32_t operator[](std::string_view name) const;

  // The first name given to set() that the kernel does not have; empty if there was none.
  const std::string& unknown_name() const { return unknown_name_; }

  uint32_t workgroup_size() const { return words_.empty() ? 1 : words_.front(); }
  struct Named {
    const char* name;
    uint32_t word;
    bool is_float;
  };
  // All that are passed to the kernel, except the workgroup size; none if they have no names.
  std::vector<Named> named() const;
  // What is passed to the kernel as constants 0, 1, 2, ...
  std::span<const uint32_t> words() const { return words_; }

  bool operator==(const KernelConstants& other) const { return words_ == other.words_; }
  auto operator<=>(const KernelConstants& other) const { return words_ <=> other.words_; }

 private:
  // What is the same for all values of a struct.
  struct Declaration {
    std::span<const params::DeclaredConstant> constants;
    std::span<const uint32_t> defaults;
  };
  template <class T>
  static constexpr size_t kCount = sizeof(T) / sizeof(uint32_t);
  template <class T>
  struct Declared;

  std::optional<size_t> index_of(std::string_view name) const;

  std::vector<uint32_t> words_;
  const Declaration* declaration_ = nullptr;
  std::string unknown_name_;
};

template <class T>
struct KernelConstants::Declared {
  template <size_t... kIds>
  static constexpr bool ids_in_order(std::index_sequence<kIds...>) {
    return ((T::template declared<T>(params::ConstantId<kIds>{}).offset == 4 * kIds) && ...);
  }
  template <size_t... kIds>
  static constexpr std::array<params::DeclaredConstant, kCount<T>> constants_of(
      std::index_sequence<kIds...>) {
    return {T::template declared<T>(params::ConstantId<kIds>{})...};
  }
  using Ids = std::make_index_sequence<kCount<T>>;
  static_assert(ids_in_order(Ids{}), "constants are declared in the order of their ids, from 0 on");

  static constexpr auto kConstants = constants_of(Ids{});
  static constexpr auto kDefaults = std::bit_cast<std::array<uint32_t, kCount<T>>>(T{});
  static constexpr Declaration kDeclaration{kConstants, kDefaults};
};

template <DeclaredConstants T>
KernelConstants::KernelConstants(const T& values) : declaration_(&Declared<T>::kDeclaration) {
  const auto words = std::bit_cast<std::array<uint32_t, kCount<T>>>(values);
  size_t count = words.size();
  if constexpr (requires { T::kFirstOptional; }) {
    while (count > T::kFirstOptional && words[count - 1] == Declared<T>::kDefaults[count - 1])
      --count;
  }
  words_.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace hearth
