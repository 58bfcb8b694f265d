// One GGUF file in memory: its header, checked from front to back, and where its tensors lie.
//
// GGUF 2 and 3, little endian: magic, version, counts; the keys; the tensors' names, shapes and
// types; then, aligned, their bytes. Every count is checked against the bytes that are left before
// anything is allocated for it, so that reading a file never takes more than twice its size.
// Pure functions: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/weights/metadata.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// The kinds of values, by the numbers files have for them.
enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr std::uint64_t kGgufDefaultAlignment = 32;
// More keys than this are no model's: it bounds what a header of nothing but keys can take.
inline constexpr std::uint64_t kGgufMaxKeys = 1024;

// A key as it lies in the file; what copies a file keeps its values bit by bit.
struct GgufKey {
  std::string_view key;
  GgufType type;
  std::span<const std::byte> value;  // an array's begins with the type and count of its elements
};

struct GgufImage {
  std::uint32_t version = 0;
  std::uint64_t alignment = kGgufDefaultAlignment;
  std::vector<GgufKey> keys;  // in the file's order
  Metadata metadata;
  std::vector<ModelTensor> tensors;  // in order of name
};

// Errors say at which byte, key or tensor; the caller knows the file's name. `bytes` must outlive
// the image.
Result<GgufImage> read_gguf(std::span<const std::byte> bytes);

}  // namespace hearth
