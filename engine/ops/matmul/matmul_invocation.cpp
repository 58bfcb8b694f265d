// matmul_invocation: for CPUs. One invocation per row of the matrix: no barrier, no reduction.
#include "params/matmul_invocation.h"

#include <algorithm>

#include "engine/ops/matmul/family.h"

namespace hearth {
namespace {

// How many rows of x an invocation of matmul_invocation computes. Decoding weights takes a CPU as
// long as multiplying 2.4 rows by them (measured, 32000 x 288 weights of Q8_0). There are few
// sizes, so that few kernels have to be compiled.
uint32_t cpu_rows_at_once(uint32_t rows) {
  constexpr uint32_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
  return *std::ranges::min_element(
      kSizes, {}, [&](uint32_t size) { return divide_up(rows, size) * (5 * size + 12); });
}

bool supports_matmul_invocation(const MatmulRequest& request) { return is_cpu(request.caps); }

// Small matrices get small workgroups, so that there are some for every core.
MatmulPlan plan_matmul_invocation(const MatmulRequest& request) {
  constexpr uint32_t kGroups = 16;
  const auto& [caps, shape, deterministic] = request;
  const uint32_t rows = deterministic ? kDeterministicRows : cpu_rows_at_once(shape.rows);
  uint32_t lanes = group_size(caps, 64);
  while (lanes > caps.subgroup_size && divide_up(shape.outputs, lanes) < kGroups) lanes /= 2;
  return {.multiply = {
              .pipeline = {.kernel = variant("matmul_invocation", shape.format),
                           .constants = params::MatmulInvocationConstants{.kWorkgroupSize = lanes,
                                                                          .kRows = rows}},
              .groups = {.x = divide_up(shape.outputs, lanes), .y = divide_up(shape.rows, rows)}}};
}

}  // namespace

const MatmulFamily kMatmulInvocation{"matmul_invocation", supports_matmul_invocation,
                                     plan_matmul_invocation};

}  // namespace hearth
