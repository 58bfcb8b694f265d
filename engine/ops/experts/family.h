// The kernels of experts. choose_experts() asks the families one after the other, and the first
// that supports a step plans its two products. Choosing the experts of each row, grouping the rows
// and adding up the results do not depend on the family.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/ops/experts.h"
#include "engine/ops/kernel_family.h"

namespace hearth {

struct ExpertsRequest {
  const DeviceCaps& caps;
  const ExpertsShape& shape;
  bool deterministic = false;
};

// The plans have `gate_up`, `down` and `prepare`, and the tiles that both products use.
using ExpertsFamily = KernelFamily<ExpertsRequest, ExpertsPlan>;
extern const ExpertsFamily kExpertsInvocation;  // experts_invocation.cpp, and so on
extern const ExpertsFamily kExpertsOneRow;
extern const ExpertsFamily kExpertsFew;
extern const ExpertsFamily kExpertsVectors;
extern const ExpertsFamily kExpertsTiles;

// In the order in which they are asked; the last supports everything.
std::span<const ExpertsFamily* const> experts_families();

// A product of an expert, for all tiles.
struct ExpertProductShape {
  WeightFormat format;
  uint32_t inputs, outputs;
  bool gated;

  uint32_t results() const { return gated ? outputs / 2 : outputs; }
};
ExpertProductShape gate_up_product(const ExpertsShape& shape);
ExpertProductShape down_product(const ExpertsShape& shape);

// Pairs of a row and an expert.
inline uint32_t pairs_of(const ExpertsShape& shape) { return shape.rows * shape.used; }
// Whether rows share experts, so that pairs are grouped by expert. With a row of its own for nearly
// every expert there is nothing to share.
bool shares_experts(const ExpertsRequest& request);
// The most tiles that any choice of experts needs.
uint32_t most_tiles(const ExpertsShape& shape, uint32_t tile_rows);

// The matmul kernel's variant for experts: "matmul_wide.f16" becomes "experts_wide.f16".
std::string experts_kernel(const std::string& matmul);

// For kernels of a few rows of MXFP4 on matrix units with a known fragment layout. MXFP4's bits are
// cheap to turn into halves and costly to turn into integers.
bool suits_few_rows(const ExpertsRequest& request);
inline constexpr uint32_t kTeamLanes = 32;  // per subgroup of such a kernel
// Subgroups that divide k, each with the same number of steps.
uint32_t team_subgroups(uint32_t most, uint32_t inputs);
// Whether there is room for a workgroup, and for small arrays beside `shared_bytes`.
bool team_fits(const DeviceCaps& caps, uint32_t subgroups, uint32_t shared_bytes);
ExpertsPlan few_rows_plan(const ExpertsShape& shape, const ExpertProduct& gate_up,
                          const ExpertProduct& down);

}  // namespace hearth
