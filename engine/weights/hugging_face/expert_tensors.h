// gpt-oss's experts, as GGUF has them: folders keep gate and up in one tensor, in which they take
// turns, transpose matrices of floats, and split MXFP4 into blocks and exponents.
#pragma once

#include <deque>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth::hugging_face {

// Replaces these tensors by ffn_gate_exps, ffn_up_exps and ffn_down_exps, whose strides say where
// their rows are and stay in `strides`. Others are left alone. The error names a tensor that does
// not fit its other half.
Status arrange_experts(std::vector<ModelTensor>& tensors, std::deque<TensorStrides>& strides);

}  // namespace hearth::hugging_face
