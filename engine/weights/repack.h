// Converts file layout to device layout and back: a lossless permutation of a matrix's bits.
//
// In the file, a block is its fields one after the other, 17 to 210 bytes. On the device, each
// field is in a plane with those of all other blocks (formats.h: DeviceLayout), aligned for the
// wide loads of a kernel, with its bits in the order of pieces (shaders/quant/README.md). Blocks
// are independent, so several threads may repack ranges of them as they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/weights/formats.h"

namespace hearth {

// Repacks consecutive blocks. planes[p] is the address of the first block's bytes in plane p: in a
// whole device layout, layout.offset[p] + first_block * plane_bytes[p]. Writes each plane from
// front to back, never reads it, and needs no alignment. REQUIRES: `file` holds whole blocks;
// `planes` has one pointer per plane of the format.
void repack_blocks(WeightFormat format, std::span<const std::byte> file,
                   std::span<std::byte* const> planes);

// The inverse of repack_blocks; `file` is filled.
void unrepack_blocks(WeightFormat format, std::span<const std::byte* const> planes,
                     std::span<std::byte> file);

// Repacks a whole matrix. Padding between planes is zeroed. REQUIRES: `file` holds whole blocks;
// `device` holds device_layout(format, blocks).total_bytes.
void repack_matrix(WeightFormat format, std::span<const std::byte> file,
                   std::span<std::byte> device);

void unrepack_matrix(WeightFormat format, std::span<const std::byte> device,
                     std::span<std::byte> file);

}  // namespace hearth
