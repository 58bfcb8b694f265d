// With every layer divided over ranks (engine/ranks): the rows between two sums are divided over
// them, too, so that each rank norms only its own rows and keeps only their hidden state. A sum
// then gives a rank the rows that it has, and norms and adds run on these; a gather returns all
// rows to all ranks where anything else reads them. Pure.
//
//   hidden += down * mlp; sum; normed = norm(hidden)
//   -> projected = down * mlp; sum of own rows; hidden += projected, normed = norm(hidden), on own
//      rows; gather normed
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/tensor_shard.h"
#include "engine/program/op.h"

namespace hearth {

// Whether divide_rows() knows what to do with these ops. The answer is the same for all ranks.
bool can_divide_rows(std::span<const Op> ops);

// The ops of a rank, which has own_rows(). From where the rows with wanted logits are picked, sums
// have all rows again. REQUIRES: can_divide_rows(), and `rows`, the step's, are at least as many as
// ranks.
std::vector<Op> divide_rows(std::vector<Op> ops, const TensorShard& shard, uint32_t rows);

}  // namespace hearth
