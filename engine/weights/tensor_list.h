// What holds for the tensors of any kind of file.
#pragma once

#include <span>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// No byte may belong to two tensors. REQUIRES: all lie in one file.
Status refuse_overlaps(std::span<const ModelTensor> tensors);

// In order of name, as ModelFile::find wants them; refuses a name that is there twice.
Status sort_tensors(std::vector<ModelTensor>& tensors);

}  // namespace hearth
