// Checks that apply to the tensors of any kind of file.
#pragma once

#include <span>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// Fails if a byte belongs to two tensors. REQUIRES: all are in one file.
Status refuse_overlaps(std::span<const ModelTensor> tensors);

// Sorts by name, as ModelFile::find expects; fails if a name occurs twice.
Status sort_tensors(std::vector<ModelTensor>& tensors);

}  // namespace hearth
