// Errors are values. A function that can fail for a reason outside the program (a file, a driver,
// full memory) returns Result<T>, or Status if it has no value to return. The message is one line
// that a user can act on; code decides by the kind.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace hearth {

enum class ErrorKind {
  kInvalid,      // the request makes no sense
  kNotFound,     // a file, device or kernel does not exist
  kBusy,         // full at the moment; may succeed later
  kUnsupported,  // valid, but not supported on this device or in this build
  kOutOfMemory,  // host or device memory; the message says how much was requested and is left
  kDeviceLost,   // the GPU is gone; this Device cannot be used any more
  kIo,           // reading or writing failed
  kInternal,     // an unexpected error from a driver
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

inline Error invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}

// Either a T or an Error. Check ok() first: value() on an error is a programming mistake.
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

// HEARTH_TRY(status): returns an error to the caller, or continues.
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
