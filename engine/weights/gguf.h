// One GGUF file in memory: its header, fully checked, and where its tensors are.
//
// GGUF 2 and 3, little endian: magic, version, counts; the keys; the tensors' names, shapes and
// types; then, aligned, their bytes. Every count is compared with the remaining bytes before
// anything is allocated for it, so reading a file never takes more than twice its size. Pure
// functions.
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

// The types of values, with their numbers in the file.
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
// No model has more keys; this bounds the memory for a malicious header.
inline constexpr std::uint64_t kGgufMaxKeys = 1024;

// A key in file layout, so that copying a file keeps its values bit by bit.
struct GgufKey {
  std::string_view key;
  GgufType type;
  std::span<const std::byte> value;  // an array begins with its element type and count
};

struct GgufImage {
  std::uint32_t version = 0;
  std::uint64_t alignment = kGgufDefaultAlignment;
  std::vector<GgufKey> keys;  // in the file's order
  Metadata metadata;
  std::vector<ModelTensor> tensors;  // in order of name
};

// Errors name the byte, key or tensor; the caller adds the file name. `bytes` must outlive the
// image.
Result<GgufImage> read_gguf(std::span<const std::byte> bytes);

}  // namespace hearth
