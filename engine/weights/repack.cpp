#include "engine/weights/repack.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "shaders/quant/cpp.h"

namespace hearth {
namespace {

using quant::Field;
using quant::FieldOrder;

// Moves one field of consecutive blocks. Strides are the bytes from one block to the next.
struct FieldMove {
  const std::byte* from;
  std::size_t from_stride;
  std::byte* to;
  std::size_t to_stride;
  std::size_t blocks;
  std::size_t bytes;  // of the field in one block
};

template <class T>
T load_unaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

// Calls move_block(from, to) for every block.
template <class MoveBlock>
void for_blocks(const FieldMove& move, MoveBlock move_block) {
  for (std::size_t i = 0; i < move.blocks; ++i)
    move_block(move.from + i * move.from_stride, move.to + i * move.to_stride);
}

template <std::size_t bytes>
void copy_sized(const FieldMove& move) {
  for_blocks(move, [](const std::byte* from, std::byte* to) { std::memcpy(to, from, bytes); });
}

// With a size known at compile time, copying a small field takes one or two instructions.
void copy_bytes(const FieldMove& move) {
  if (move.from_stride == move.bytes && move.to_stride == move.bytes) {
    std::memcpy(move.to, move.from, move.bytes * move.blocks);
    return;
  }
  switch (move.bytes) {
    case 1:
      return copy_sized<1>(move);
    case 2:
      return copy_sized<2>(move);
    case 4:
      return copy_sized<4>(move);
    case 8:
      return copy_sized<8>(move);
    case 16:
      return copy_sized<16>(move);
    case 32:
      return copy_sized<32>(move);
    default:
      for_blocks(move,
                 [&](const std::byte* from, std::byte* to) { std::memcpy(to, from, move.bytes); });
  }
}

// Swaps the two middle bytes of a word (shaders/quant/piece.h says why).
std::uint32_t cross(std::uint32_t word) {
  return (word & 0xff0000ffu) | ((word << 8) & 0x00ff0000u) | ((word >> 8) & 0x0000ff00u);
}

// Does this in place, in all blocks that a move has written.
void cross_words(const FieldMove& move) {
  for (std::size_t i = 0; i < move.blocks; ++i)
    for (std::byte *at = move.to + i * move.to_stride, *end = at + move.bytes; at < end; at += 4)
      store(at, cross(load_unaligned<std::uint32_t>(at)));
}

// Swaps the bits of a that are `distance` above the masked ones with the masked bits of b.
void exchange_bits(std::uint64_t& a, std::uint64_t& b, int distance, std::uint64_t mask) {
  const std::uint64_t first = (a & mask) | ((b & mask) << distance);
  b = ((a >> distance) & mask) | (b & ~mask);
  a = first;
}

// Two pieces of nibbles. The file has one in the low and one in the high nibbles of 32 bytes. On
// the device, each piece has 16 bytes, with its weights 0 to 15 in the low and 16 to 31 in the high
// nibbles. So the high nibbles of bytes 0 to 15 are swapped with the low ones of bytes 16 to 31, in
// either direction.
void exchange_nibbles(const std::byte* from0, const std::byte* from1, std::byte* to0,
                      std::byte* to1) {
  for (std::size_t i = 0; i < 16; i += 8) {
    auto a = load_unaligned<std::uint64_t>(from0 + i);
    auto b = load_unaligned<std::uint64_t>(from1 + i);
    exchange_bits(a, b, 4, 0x0f0f0f0f0f0f0f0full);
    store(to0 + i, a);
    store(to1 + i, b);
  }
}

// Pieces 2c and 2c+1 share 32 bytes, number c, in the file and on the device.
void nibble_pairs(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 32)
      exchange_nibbles(from + i, from + i + 16, to + i, to + i + 16);
  });
}

// Of every four pieces, 0 and 2 share the first 32 of the file's 64 bytes, and 1 and 3 the last 32.
void nibble_fours_to_device(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 64) {
      exchange_nibbles(from + i, from + i + 16, to + i, to + i + 32);
      exchange_nibbles(from + i + 32, from + i + 48, to + i + 16, to + i + 48);
    }
  });
}

void nibble_fours_to_file(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 64) {
      exchange_nibbles(from + i, from + i + 32, to + i, to + i + 16);
      exchange_nibbles(from + i + 16, from + i + 48, to + i + 32, to + i + 48);
    }
  });
}

// Transposes the 4x4 two-bit fields that are in the same byte of four words.
void transpose_two_bits(std::array<std::uint64_t, 4>& words) {
  constexpr std::uint64_t kPairs = 0x3333333333333333ull;
  constexpr std::uint64_t kNibbles = 0x0f0f0f0f0f0f0f0full;
  exchange_bits(words[0], words[1], 2, kPairs);
  exchange_bits(words[2], words[3], 2, kPairs);
  exchange_bits(words[0], words[2], 4, kNibbles);
  exchange_bits(words[1], words[3], 4, kNibbles);
}

// In each 32 bytes of the file, word 4*half + s has weights 4s to 4s+3 of one half of four pieces.
// On the device they are in word `half` of a piece's 8 bytes, in two-bit field s. Both halves are
// moved at once, one in each half of a 64-bit word.
void two_bits_to_device(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 32) {
      std::array<std::uint64_t, 4> words;
      for (std::size_t s = 0; s < 4; ++s)
        words[s] = load_unaligned<std::uint32_t>(from + i + 4 * s) |
                   std::uint64_t{load_unaligned<std::uint32_t>(from + i + 16 + 4 * s)} << 32;
      transpose_two_bits(words);
      std::memcpy(to + i, words.data(), 32);
    }
  });
}

void two_bits_to_file(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 32) {
      std::array<std::uint64_t, 4> words;
      std::memcpy(words.data(), from + i, 32);
      transpose_two_bits(words);
      for (std::size_t s = 0; s < 4; ++s) {
        store(to + i + 4 * s, static_cast<std::uint32_t>(words[s]));
        store(to + i + 16 + 4 * s, static_cast<std::uint32_t>(words[s] >> 32));
      }
    }
  });
}

// In the file's word i, bit p of each byte belongs to piece p; in the device's word p it is bit i:
// a transpose.
void one_bits(const FieldMove& move) {
  for_blocks(move, [&](const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < move.bytes; i += 32) {
      quant::Piece words{};
      std::memcpy(words.q, from + i, 32);
      words = quant::transpose_bits(words);
      std::memcpy(to + i, words.q, 32);
    }
  });
}

// Bit 4i+b of the file's word becomes bit i of byte b on the device, whose middle bytes are then
// swapped. The multiplications spread the bits of a nibble over four bytes and back without
// carries.
void word_bits_to_device(const FieldMove& move) {
  for_blocks(move, [](const std::byte* from, std::byte* to) {
    const auto bits = load_unaligned<std::uint32_t>(from);
    std::uint32_t slice = 0;
    for (int i = 0; i < 8; ++i)
      slice |= ((((bits >> (4 * i)) & 15u) * 0x00204081u) & 0x01010101u) << i;
    store(to, cross(slice));
  });
}

void word_bits_to_file(const FieldMove& move) {
  for_blocks(move, [](const std::byte* from, std::byte* to) {
    const std::uint32_t slice = cross(load_unaligned<std::uint32_t>(from));
    std::uint32_t bits = 0;
    for (int i = 0; i < 8; ++i)
      bits |= (((((slice >> i) & 0x01010101u) * 0x01020408u) >> 24) & 15u) << (4 * i);
    store(to, bits);
  });
}

// Moving bits between the same bytes of words commutes with swapping bytes within words, so
// `crosses` comes last in either direction.
struct OrderMoves {
  FieldOrder order;
  bool crosses;
  void (*to_device)(const FieldMove&);
  void (*to_file)(const FieldMove&);
};
constexpr std::array<OrderMoves, quant::kFieldOrderCount> kOrders = {{
    {FieldOrder::kBytes, false, copy_bytes, copy_bytes},
    {FieldOrder::kWeightBytes, true, copy_bytes, copy_bytes},
    {FieldOrder::kNibblePairs, true, nibble_pairs, nibble_pairs},
    {FieldOrder::kNibbleFours, true, nibble_fours_to_device, nibble_fours_to_file},
    {FieldOrder::kTwoBits, true, two_bits_to_device, two_bits_to_file},
    {FieldOrder::kOneBits, true, one_bits, one_bits},
    {FieldOrder::kWordBits, false, word_bits_to_device, word_bits_to_file},
}};

const OrderMoves& moves_of(const Field& field) {
  const OrderMoves& moves = kOrders[static_cast<std::size_t>(field.order)];
  assert(moves.order == field.order);
  return moves;
}

// Goes field by field, in batches of blocks that stay in the cache for all fields.
constexpr std::size_t kBatchBytes = 16 * 1024;

template <class MoveBatch>
void for_batches(const FormatInfo& info, std::size_t blocks, MoveBatch move_batch) {
  const std::size_t batch = std::max<std::size_t>(1, kBatchBytes / info.block_bytes);
  for (std::size_t first = 0; first < blocks; first += batch)
    move_batch(first, std::min(batch, blocks - first));
}

}  // namespace

void repack_blocks(WeightFormat format, std::span<const std::byte> file,
                   std::span<std::byte* const> planes) {
  const FormatInfo& info = format_info(format);
  assert(file.size() % info.block_bytes == 0 && planes.size() == info.plane_bytes.size());
  for_batches(info, file.size() / info.block_bytes, [&](std::size_t first, std::size_t count) {
    for (const Field& field : info.fields) {
      const std::size_t stride = info.plane_bytes[field.plane];
      const FieldMove move{
          .from = file.data() + first * info.block_bytes + field.file_offset,
          .from_stride = info.block_bytes,
          .to = planes[field.plane] + first * stride + field.plane_offset,
          .to_stride = stride,
          .blocks = count,
          .bytes = field.bytes,
      };
      const OrderMoves& moves = moves_of(field);
      moves.to_device(move);
      if (moves.crosses) cross_words(move);
    }
  });
}

void unrepack_blocks(WeightFormat format, std::span<const std::byte* const> planes,
                     std::span<std::byte> file) {
  const FormatInfo& info = format_info(format);
  assert(file.size() % info.block_bytes == 0 && planes.size() == info.plane_bytes.size());
  for_batches(info, file.size() / info.block_bytes, [&](std::size_t first, std::size_t count) {
    for (const Field& field : info.fields) {
      const std::size_t stride = info.plane_bytes[field.plane];
      const FieldMove move{
          .from = planes[field.plane] + first * stride + field.plane_offset,
          .from_stride = stride,
          .to = file.data() + first * info.block_bytes + field.file_offset,
          .to_stride = info.block_bytes,
          .blocks = count,
          .bytes = field.bytes,
      };
      const OrderMoves& moves = moves_of(field);
      moves.to_file(move);
      if (moves.crosses) cross_words(move);
    }
  });
}

void repack_matrix(WeightFormat format, std::span<const std::byte> file,
                   std::span<std::byte> device) {
  const FormatInfo& info = format_info(format);
  const DeviceLayout layout = device_layout(format, file.size() / info.block_bytes);
  assert(device.size() >= layout.total_bytes);
  const std::size_t plane_count = info.plane_bytes.size();
  std::array<std::byte*, kMaxPlanes> planes{};
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    planes[plane] = device.data() + layout.offset[plane];
    const std::uint64_t used = layout.offset[plane] + layout.blocks * info.plane_bytes[plane];
    const std::uint64_t end =
        plane + 1 < plane_count ? layout.offset[plane + 1] : layout.total_bytes;
    std::fill(device.begin() + static_cast<std::ptrdiff_t>(used),
              device.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  }
  repack_blocks(format, file, std::span(planes).first(plane_count));
}

void unrepack_matrix(WeightFormat format, std::span<const std::byte> device,
                     std::span<std::byte> file) {
  const FormatInfo& info = format_info(format);
  const DeviceLayout layout = device_layout(format, file.size() / info.block_bytes);
  assert(device.size() >= layout.total_bytes);
  std::array<const std::byte*, kMaxPlanes> planes{};
  for (std::size_t plane = 0; plane < info.plane_bytes.size(); ++plane)
    planes[plane] = device.data() + layout.offset[plane];
  unrepack_blocks(format, std::span(planes).first(info.plane_bytes.size()), file);
}

}  // namespace hearth
