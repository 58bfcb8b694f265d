// Errors are values. A function that can fail for a reason outside the program (a file, a driver,
// a full memory) returns Result<T>, or Status where there is nothing to return. The message is one
// line that a user can act on; the kind is what code may decide on.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace hearth {

enum class ErrorKind {
  kInvalid,      // what was asked for makes no sense
  kNotFound,     // a file, device or kernel that is not there
  kBusy,         // full at the moment; the same may succeed later
  kUnsupported,  // understood, but not on this device or build
  kOutOfMemory,  // host or device memory; the message says what was asked for and what was left
  kDeviceLost,   // the GPU is gone; nothing more can be done with this Device
  kIo,           // reading or writing failed
  kInternal,     // a driver answered with an error nobody expects
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

inline Error invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}

// Either a T or an Error. Look before you take: value() on an error is a programmer's mistake.
template <class T>
class [[nodiscard]] Result {
 public:
  using Value = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Error error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

struct Done {};

// Success without a value, or an Error.
class [[nodiscard]] Status : public Result<Done> {
 public:
  Status() : Result<Done>(Done{}) {}
  Status(Error error) : Result<Done>(std::move(error)) {}
};

}  // namespace hearth

// HEARTH_TRY(status): returns the error to the caller, or goes on.
#define HEARTH_TRY(expression)                                  \
  do {                                                          \
    if (auto hearth_status = (expression); !hearth_status.ok()) \
      return std::move(hearth_status).error();                  \
  } while (false)

// HEARTH_ASSIGN(auto x, result): declares or assigns x, or returns the error to the caller.
#define HEARTH_ASSIGN(target, expression) \
  HEARTH_ASSIGN_NAMED(HEARTH_UNIQUE(hearth_result_, __LINE__), target, expression)
#define HEARTH_ASSIGN_NAMED(name, target, expression) \
  auto name = (expression);                           \
  if (!name.ok()) return std::move(name).error();     \
  target = std::move(name).value()
#define HEARTH_UNIQUE(prefix, line) HEARTH_UNIQUE_JOIN(prefix, line)
#define HEARTH_UNIQUE_JOIN(prefix, line) prefix##line
