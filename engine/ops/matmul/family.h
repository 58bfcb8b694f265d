// The kernels of matrix products. choose_matmul() asks the families one after the other; the first
// that supports a product plans it. What they share is here, too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/ops/kernel_family.h"
#include "engine/ops/matmul.h"

namespace hearth {

struct MatmulRequest {
  const DeviceCaps& caps;
  const MatmulShape& shape;
  bool deterministic = false;
};

using MatmulFamily = KernelFamily<MatmulRequest, MatmulPlan>;
extern const MatmulFamily kMatmulInvocation;  // matmul_invocation.cpp, and so on
extern const MatmulFamily kMatmulTeam;
extern const MatmulFamily kMatvecTeam;
extern const MatmulFamily kMatmulTiles;  // tiles.cpp: several kernels
extern const MatmulFamily kMatvecInteger;
extern const MatmulFamily kMatvecFloat;

// In the order in which they are asked; the last supports everything.
std::span<const MatmulFamily* const> matmul_families();

std::string variant(std::string_view kernel, WeightFormat format);  // "matmul_tile.f32"

// Whether matrix units can be used for weights of this format.
bool matrix_units(const DeviceCaps& caps, WeightFormat format);

// Whether integer dot products can be used: matvec_integer.
bool integer_products(const DeviceCaps& caps, const MatmulShape& shape);

// The rows of x that a matrix-vector kernel computes at once. A row's result depends on the kernel
// and its constants, so a fixed number makes it the same alone and in a batch.
uint32_t matvec_rows(const MatmulRequest& request);
inline constexpr uint32_t kDeterministicRows = 4;

// No device guarantees more subgroups per workgroup.
inline constexpr uint32_t kMostSubgroups = 32;

// Plans x as f16, converted by a kernel of its own unless an earlier one writes it.
void take_halves(const DeviceCaps& caps, const MatmulShape& shape, MatmulPlan& plan);

// Plans k in `splits` splits, whose partial sums, with rows in multiples of `tile_rows`, are added
// up at the end.
void leave_parts(const DeviceCaps& caps, const MatmulShape& shape, uint32_t splits,
                 uint32_t tile_rows, MatmulPlan& plan);

}  // namespace hearth
