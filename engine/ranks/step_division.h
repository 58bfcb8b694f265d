// Divides a step into parts, so that the ranks of a pipeline work at the same time: while the
// second rank computes the first part, the first rank computes the second one. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/step_batch.h"

namespace hearth {

// Whether a step has nothing but plain rows: no trees, pooled rows, commits, padding or mixed rows.
bool is_plain_step(const StepBatch& batch);

// At most `parts` batches with nearly as many rows each and at least `least_rows`, in the order of
// the step's rows; together they compute what `batch` does. A sequence may go on in the next part.
// A batch that is not plain is one part.
std::vector<StepBatch> divide_step(const StepBatch& batch, uint32_t parts, uint32_t least_rows);

}  // namespace hearth
