// Arguments of a kernel. A header of shaders/params declares them as a struct whose buffers say what
// the kernel does with them; from such a struct follow both the push constants and the accesses
// that Hazards needs:
//
//   recorder.dispatch({.pipeline = *pipeline,
//                      .arguments = params::HalfRows{.x = x, .y = y, .width = 64},
//                      .groups = groups});
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "runtime/chain.h"
#include "runtime/hazards.h"
#include "runtime/rounding.h"

namespace hearth {

// A buffer as an argument. The kernel sees its address, or 0 if there is none.
template <AccessMode kDeclared>
class BufferArgument {
 public:
  BufferArgument() = default;
  BufferArgument(const BufferSlice& slice) : access_{slice, kDeclared} {}
  BufferArgument(const std::optional<BufferSlice>& slice) {
    if (slice) access_ = {*slice, kDeclared};
  }
  // For a kernel that in this dispatch does less than it is declared to do. REQUIRES: no more.
  BufferArgument(const Access& access) : access_(access) {
    assert(kDeclared == AccessMode::kReadWrite || access.mode == kDeclared ||
           (kDeclared == AccessMode::kWrite && access.mode == AccessMode::kWriteDisjoint));
  }

  uint64_t address() const { return access_.slice.buffer == nullptr ? 0 : access_.slice.address(); }
  const Access& access() const { return access_; }

 private:
  Access access_;
};

// A buffer that the kernel finds by itself: by its distance from another one, or by addresses in
// memory. It takes no room among the arguments, and is declared for the sake of its access.
template <AccessMode kDeclared>
struct FoundBuffer : BufferArgument<kDeclared> {
  using BufferArgument<kDeclared>::BufferArgument;
};

// Every device has this many bytes of push constants. The recorder uses the last ones.
inline constexpr size_t kPushBytes = 128;
inline constexpr size_t kMaxPushBytes = kPushBytes - sizeof(ChainPush);
inline constexpr size_t kMostAccesses = 16;

namespace fields {

// Something that any member can be initialized with, to count members.
struct Anything {
  template <class T>
  constexpr operator T() const;
};

template <class T, class... Members>
consteval size_t count() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return count<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

// Calls `use` with all members of a plain struct, in order. A struct of arguments has few: each
// takes 4 bytes or more.
template <class T, class Use>
constexpr auto with_members(const T& value, const Use& use) {
  constexpr size_t kCount = count<T>();
  static_assert(kCount > 0 && kCount <= 20);
#define HEARTH_MEMBERS(n, ...)         \
  if constexpr (kCount == n) {         \
    const auto& [__VA_ARGS__] = value; \
    return use(__VA_ARGS__);           \
  }
  // clang-format off
  HEARTH_MEMBERS(1, a)
  HEARTH_MEMBERS(2, a, b)
  HEARTH_MEMBERS(3, a, b, c)
  HEARTH_MEMBERS(4, a, b, c, d)
  HEARTH_MEMBERS(5, a, b, c, d, e)
  HEARTH_MEMBERS(6, a, b, c, d, e, f)
  HEARTH_MEMBERS(7, a, b, c, d, e, f, g)
  HEARTH_MEMBERS(8, a, b, c, d, e, f, g, h)
  HEARTH_MEMBERS(9, a, b, c, d, e, f, g, h, i)
  HEARTH_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
  HEARTH_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
  HEARTH_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  HEARTH_MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  HEARTH_MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  HEARTH_MEMBERS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  HEARTH_MEMBERS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  HEARTH_MEMBERS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  HEARTH_MEMBERS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  HEARTH_MEMBERS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  HEARTH_MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  // clang-format on
#undef HEARTH_MEMBERS
}

template <class T>
inline constexpr bool kIsBuffer = false;
template <AccessMode kDeclared>
inline constexpr bool kIsBuffer<BufferArgument<kDeclared>> = true;

template <class T>
inline constexpr bool kIsFound = false;
template <AccessMode kDeclared>
inline constexpr bool kIsFound<FoundBuffer<kDeclared>> = true;

template <class Member>
inline constexpr bool kHasAccess = kIsBuffer<Member> || kIsFound<Member>;

// The bytes of a member in GLSL, which are also its alignment; 0 if GLSL does not have it.
template <class Member>
inline constexpr size_t kBytes = kIsFound<Member>    ? 0
                                 : kIsBuffer<Member> ? sizeof(uint64_t)
                                                     : sizeof(Member);

template <class... Members>
consteval size_t packed_bytes() {
  size_t end = 0;
  for (const size_t bytes : {kBytes<Members>...})
    if (bytes > 0) end = round_up(end, bytes) + bytes;
  return end;
}

}  // namespace fields

// Arguments of any kernel, packed. Made from a struct of HEARTH_PARAMS, or a single number.
class KernelArguments {
 public:
  template <class T>
  KernelArguments(const T& arguments) {
    if constexpr (std::is_aggregate_v<T>) {
      fields::with_members(arguments, [this]<class... Members>(const Members&... members) {
        static_assert(fields::packed_bytes<Members...>() <= kMaxPushBytes,
                      "these arguments do not fit into push constants");
        static_assert((size_t{fields::kHasAccess<Members>} + ...) <= kMostAccesses,
                      "these arguments have too many buffers");
        (this->add(members), ...);
      });
    } else {
      add(arguments);
    }
  }

  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  // What the kernel does with its buffers, except those that are absent.
  std::span<const Access> accesses() const { return {accesses_.data(), count_}; }

 private:
  template <class Member>
  void add(const Member& member) {
    if constexpr (fields::kHasAccess<Member>) {
      if constexpr (fields::kIsBuffer<Member>) put(member.address());
      if (member.access().slice.buffer != nullptr) accesses_[count_++] = member.access();
    } else {
      put(member);
    }
  }
  template <class Number>
  void put(Number number) {
    static_assert(std::is_arithmetic_v<Number> && (sizeof number == 4 || sizeof number == 8));
    size_ = round_up(size_, sizeof number);
    std::memcpy(bytes_.data() + size_, &number, sizeof number);
    size_ += sizeof number;
  }

  std::array<std::byte, kMaxPushBytes> bytes_{};
  size_t size_ = 0;
  std::array<Access, kMostAccesses> accesses_;
  size_t count_ = 0;
};

}  // namespace hearth
