#include "engine/weights/gguf.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "engine/weights/byte_reader.h"
#include "engine/weights/cut_off.h"
#include "engine/weights/ggml_types.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/tensor_list.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

// The fewest bytes a key can take: length and one byte of its name, type, one byte of value.
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
// The fewest bytes a tensor can take: length and one byte of its name, number of dimensions, one
// dimension, type, offset, and one weight.
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8 + 2;
constexpr std::uint64_t kLongestKey = 65535;
constexpr std::uint64_t kLongestTensorName = 255;
constexpr std::uint32_t kMaxGgufDimensions = 4;
constexpr std::uint64_t kLeastAlignment = 8, kMaxAlignment = 1 << 20;
// The most blocks that the device layout can address.
constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 32;

std::optional<NumberType> number_type(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return NumberType::kUint8;
    case GgufType::kInt8:
      return NumberType::kInt8;
    case GgufType::kUint16:
      return NumberType::kUint16;
    case GgufType::kInt16:
      return NumberType::kInt16;
    case GgufType::kUint32:
      return NumberType::kUint32;
    case GgufType::kInt32:
      return NumberType::kInt32;
    case GgufType::kFloat32:
      return NumberType::kFloat32;
    case GgufType::kBool:
      return NumberType::kBool;
    case GgufType::kUint64:
      return NumberType::kUint64;
    case GgufType::kInt64:
      return NumberType::kInt64;
    case GgufType::kFloat64:
      return NumberType::kFloat64;
    case GgufType::kString:
    case GgufType::kArray:
      return std::nullopt;
  }
  return std::nullopt;
}

Result<std::string_view> read_string(ByteReader& reader, std::string_view what) {
  HEARTH_ASSIGN(const auto length, reader.number<std::uint64_t>(what));
  HEARTH_ASSIGN(const auto bytes, reader.take(length, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class T, class As>
Result<MetadataValue> read_scalar(ByteReader& reader, std::string_view what) {
  HEARTH_ASSIGN(const T value, reader.number<T>(what));
  return MetadataValue(static_cast<As>(value));
}

Result<MetadataValue> read_bool(ByteReader& reader, std::string_view what) {
  HEARTH_ASSIGN(const auto value, reader.number<std::uint8_t>(what));
  if (value > 1) return reader.error_here(fmt::format("{} is neither true nor false", what));
  return MetadataValue(value == 1);
}

// For `count` of something that takes `least_bytes` or more each.
Error claims_too_many(const ByteReader& reader, const std::string& claim, std::uint64_t count,
                      std::uint64_t least_bytes) {
  std::uint64_t needed = 0;
  if (__builtin_mul_overflow(count, least_bytes, &needed))
    needed = std::numeric_limits<std::uint64_t>::max();
  return reader.error_cut_off(
      fmt::format("{}, but only {} bytes are left", claim, reader.remaining()), needed);
}

Result<MetadataValue> read_array(ByteReader& reader, std::string_view what) {
  HEARTH_ASSIGN(const auto element, reader.number<std::uint32_t>(what));
  HEARTH_ASSIGN(const auto count, reader.number<std::uint64_t>(what));
  const auto type = static_cast<GgufType>(element);
  const auto too_many = [&](std::uint64_t least_bytes) {
    return claims_too_many(reader, fmt::format("{} claims {} elements", what, count), count,
                           least_bytes);
  };
  if (type == GgufType::kString) {
    if (count > reader.remaining() / sizeof(std::uint64_t)) return too_many(sizeof(std::uint64_t));
    std::vector<std::string_view> texts;
    texts.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      HEARTH_ASSIGN(texts.emplace_back(), read_string(reader, what));
    }
    return MetadataValue(std::move(texts));
  }
  const auto number = number_type(type);
  if (!number) return reader.error_here(fmt::format("{} has elements of type {}", what, element));
  if (count > reader.remaining() / number_bytes(*number)) return too_many(number_bytes(*number));
  HEARTH_ASSIGN(const auto bytes, reader.take(count * number_bytes(*number), what));
  if (*number == NumberType::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
    return reader.error_here(fmt::format("{} has an element that is neither true nor false", what));
  return MetadataValue(PackedNumbers{.type = *number, .bytes = bytes});
}

Result<MetadataValue> read_value(ByteReader& reader, GgufType type, std::string_view what) {
  switch (type) {
    case GgufType::kUint8:
      return read_scalar<std::uint8_t, std::uint64_t>(reader, what);
    case GgufType::kInt8:
      return read_scalar<std::int8_t, std::int64_t>(reader, what);
    case GgufType::kUint16:
      return read_scalar<std::uint16_t, std::uint64_t>(reader, what);
    case GgufType::kInt16:
      return read_scalar<std::int16_t, std::int64_t>(reader, what);
    case GgufType::kUint32:
      return read_scalar<std::uint32_t, std::uint64_t>(reader, what);
    case GgufType::kInt32:
      return read_scalar<std::int32_t, std::int64_t>(reader, what);
    case GgufType::kFloat32:
      return read_scalar<float, double>(reader, what);
    case GgufType::kUint64:
      return read_scalar<std::uint64_t, std::uint64_t>(reader, what);
    case GgufType::kInt64:
      return read_scalar<std::int64_t, std::int64_t>(reader, what);
    case GgufType::kFloat64:
      return read_scalar<double, double>(reader, what);
    case GgufType::kBool:
      return read_bool(reader, what);
    case GgufType::kArray:
      return read_array(reader, what);
    case GgufType::kString: {
      HEARTH_ASSIGN(const auto text, read_string(reader, what));
      return MetadataValue(std::string(text));
    }
  }
  return reader.error_here(
      fmt::format("{} is of unknown type {}", what, static_cast<std::uint32_t>(type)));
}

Result<std::uint32_t> read_version(ByteReader& reader) {
  HEARTH_ASSIGN(const auto magic, reader.take(kGgufMagic.size(), "the magic number"));
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found != kGgufMagic)
    return invalid(fmt::format("not a GGUF file: it begins with {}", in_quotes(found)));
  HEARTH_ASSIGN(const auto version, reader.number<std::uint32_t>("the version"));
  if (version == 2 || version == 3) return version;
  if ((version & 0xffffu) == 0 && version != 0)
    return invalid("a big-endian GGUF file; only little-endian ones are supported");
  return invalid(fmt::format("GGUF version {}; versions 2 and 3 are supported{}", version,
                             version == 1 ? " (convert the model again)" : ""));
}

Status read_keys(ByteReader& reader, std::uint64_t count, std::span<const std::byte> file,
                 GgufImage& image) {
  if (count > reader.remaining() / kLeastKeyBytes)
    return claims_too_many(reader, fmt::format("the header claims {} keys", count), count,
                           kLeastKeyBytes);
  if (count > kGgufMaxKeys)
    return reader.error_here(fmt::format("{} keys; no model has over {}", count, kGgufMaxKeys));
  image.keys.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(const auto key, read_string(reader, "the name of a key"));
    if (key.empty() || key.size() > kLongestKey)
      return reader.error_here(fmt::format("the name of key {} has {} bytes", i, key.size()));
    const std::string what = "key " + in_quotes(key);
    HEARTH_ASSIGN(const auto type, reader.number<std::uint32_t>(what));
    const std::uint64_t start = reader.offset();
    HEARTH_ASSIGN(auto value, read_value(reader, static_cast<GgufType>(type), what));
    if (image.metadata.has(key)) return reader.error_here(what + " occurs twice");
    image.keys.push_back({.key = key,
                          .type = static_cast<GgufType>(type),
                          .value = file.subspan(start, reader.offset() - start)});
    image.metadata.set(std::string(key), std::move(value));
  }
  return {};
}

Result<std::uint64_t> read_alignment(const Metadata& metadata) {
  HEARTH_ASSIGN(const auto wanted, metadata.unsigned_integer("general.alignment"));
  const std::uint64_t alignment = wanted.value_or(kGgufDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment < kLeastAlignment || alignment > kMaxAlignment)
    return invalid(fmt::format("key 'general.alignment': {} is not a power of two from {} to {}",
                               alignment, kLeastAlignment, kMaxAlignment));
  return alignment;
}

// A tensor's entry in the header; its offset counts from the end of the header.
struct TensorEntry {
  std::string_view name;
  WeightFormat format;
  std::uint32_t matrices;
  std::uint64_t rows, cols;
  std::uint64_t offset, bytes;
};

Result<TensorEntry> read_tensor(ByteReader& reader) {
  HEARTH_ASSIGN(const auto name, read_string(reader, "the name of a tensor"));
  if (name.empty() || name.size() > kLongestTensorName)
    return reader.error_here(fmt::format("the name of a tensor has {} bytes", name.size()));
  const std::string what = "tensor " + in_quotes(name);
  HEARTH_ASSIGN(const auto dimensions, reader.number<std::uint32_t>(what));
  if (dimensions < 1 || dimensions > kMaxGgufDimensions)
    return reader.error_here(fmt::format("{} has {} dimensions", what, dimensions));
  std::uint64_t shape[kMaxGgufDimensions] = {1, 1, 1, 1};
  std::uint64_t weights = 1;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    HEARTH_ASSIGN(shape[d], reader.number<std::uint64_t>(what));
    if (shape[d] == 0) return reader.error_here(fmt::format("{} has no elements", what));
    if (__builtin_mul_overflow(weights, shape[d], &weights))
      return reader.error_here(fmt::format("{} has over 2^64 elements", what));
  }
  HEARTH_ASSIGN(const auto ggml_type, reader.number<std::uint32_t>(what));
  HEARTH_ASSIGN(const auto offset, reader.number<std::uint64_t>(what));
  const auto format = format_from_ggml_type(ggml_type);
  if (!format)
    return Error{ErrorKind::kUnsupported, fmt::format("{}: weights of type {} are not supported",
                                                      what, ggml_type_name(ggml_type))};
  const FormatInfo& info = format_info(*format);
  if (shape[0] % info.block_weights != 0)
    return reader.error_here(fmt::format("{} is {} wide, which is not a multiple of {}'s {}", what,
                                         shape[0], info.name, info.block_weights));
  const std::uint64_t blocks = weights / info.block_weights;
  if (blocks >= kMaxBlocks || shape[2] * shape[3] >= kMaxBlocks)
    return reader.error_here(fmt::format("{} has over 2^32 blocks", what));
  return TensorEntry{.name = name,
                     .format = *format,
                     .matrices = static_cast<std::uint32_t>(shape[2] * shape[3]),
                     .rows = weights / shape[0],
                     .cols = shape[0],
                     .offset = offset,
                     .bytes = blocks * info.block_bytes};
}

// How far the tensors' data reaches, to tell a file that is cut off from one whose header is
// damaged: writers put one tensor after the other, so that in a whole file the last one ends where
// the sizes add up to.
class DataExtent {
 public:
  explicit DataExtent(std::uint64_t alignment) : alignment_(alignment) {}

  void add(const TensorEntry& entry) {
    std::uint64_t end = 0, padded = 0;
    damaged_ = damaged_ || __builtin_add_overflow(entry.offset, entry.bytes, &end) ||
               __builtin_add_overflow(entry.bytes, alignment_ - 1, &padded) ||
               __builtin_add_overflow(total_, padded / alignment_ * alignment_, &total_);
    end_ = std::max(end_, end);
  }
  // The message, if `bytes` of data are too few for a header that is in order.
  std::string cut_off(std::uint64_t bytes) const {
    const bool in_order = !damaged_ && end_ <= total_ && total_ - end_ < alignment_;
    return in_order && end_ > bytes ? cut_off_message(end_ - bytes) : std::string();
  }

 private:
  std::uint64_t alignment_, end_ = 0, total_ = 0;
  bool damaged_ = false;
};

// The tensor's bytes in `data`, which is the file after the header.
Result<std::span<const std::byte>> tensor_bytes(const TensorEntry& entry, std::uint64_t alignment,
                                                std::span<const std::byte> data) {
  if (entry.offset % alignment != 0)
    return invalid(fmt::format("tensor {}: its offset {} is not a multiple of {}",
                               in_quotes(entry.name), entry.offset, alignment));
  if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset)
    return invalid(fmt::format("tensor {}: {} bytes from {} on lie outside the file's {} of data",
                               in_quotes(entry.name), entry.bytes, entry.offset, data.size()));
  return data.subspan(entry.offset, entry.bytes);
}

// Reads the entries twice, because only after all of them it is known where the data begins.
Status read_tensors(ByteReader& reader, std::uint64_t count, std::span<const std::byte> file,
                    GgufImage& image) {
  if (count > reader.remaining() / kLeastTensorBytes)
    return claims_too_many(reader, fmt::format("the header claims {} tensors", count), count,
                           kLeastTensorBytes);
  ByteReader again = reader;
  DataExtent extent(image.alignment);
  for (std::uint64_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(const TensorEntry entry, read_tensor(reader));
    extent.add(entry);
  }
  const std::uint64_t padded = round_up(reader.offset(), image.alignment);
  const auto data = file.subspan(std::min<std::uint64_t>(padded, file.size()));
  if (const std::string cut_off = extent.cut_off(data.size()); !cut_off.empty())
    return invalid(cut_off);
  image.tensors.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(const TensorEntry entry, read_tensor(again));
    HEARTH_ASSIGN(const auto bytes, tensor_bytes(entry, image.alignment, data));
    image.tensors.push_back({.name = std::string(entry.name),
                             .format = entry.format,
                             .matrices = entry.matrices,
                             .rows = entry.rows,
                             .cols = entry.cols,
                             .bytes = bytes});
  }
  HEARTH_TRY(refuse_overlaps(image.tensors));
  return sort_tensors(image.tensors);
}

}  // namespace

Result<GgufImage> read_gguf(std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid("the file is empty");
  GgufImage image;
  ByteReader reader(bytes);
  HEARTH_ASSIGN(image.version, read_version(reader));
  HEARTH_ASSIGN(const auto tensor_count, reader.number<std::uint64_t>("the tensor count"));
  HEARTH_ASSIGN(const auto key_count, reader.number<std::uint64_t>("the key count"));
  HEARTH_TRY(read_keys(reader, key_count, bytes, image));
  HEARTH_ASSIGN(image.alignment, read_alignment(image.metadata));
  HEARTH_TRY(read_tensors(reader, tensor_count, bytes, image));
  return image;
}

}  // namespace hearth
