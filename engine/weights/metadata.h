// A model file's key-value pairs, named as in GGUF ("llama.block_count") whatever the file format.
// Plain data; strings and arrays of numbers may be views into the mapped file, which must outlive
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/result.h"

namespace hearth {

enum class NumberType : std::uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat32,
  kFloat64,
};
std::size_t number_bytes(NumberType type);

// An array of numbers in file layout, little endian and unaligned: a view, so that opening a file
// does not take many times its size.
struct PackedNumbers {
  NumberType type = NumberType::kUint8;
  std::span<const std::byte> bytes;

  std::size_t size() const { return bytes.size() / number_bytes(type); }
};

// Arrays of strings are views: a vocabulary of 256,000 entries is not copied.
using MetadataValue =
    std::variant<bool, std::uint64_t, std::int64_t, double, std::string, std::vector<std::uint64_t>,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>,
                 std::vector<bool>, PackedNumbers>;

class Metadata {
 public:
  void set(std::string key, MetadataValue value) {
    values_.insert_or_assign(std::move(key), std::move(value));
  }
  const MetadataValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const std::map<std::string, MetadataValue, std::less<>>& all() const { return values_; }

  // Empty if the key is absent; an error naming the key if its value has another type or is out of
  // range. Numbers are converted if that loses nothing.
  Result<std::optional<std::uint64_t>> unsigned_integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> text(std::string_view key) const;
  Result<std::optional<std::vector<double>>> numbers(std::string_view key) const;
  Result<std::optional<std::vector<bool>>> booleans(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace hearth
