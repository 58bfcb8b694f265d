// Names of tensors in Hugging Face folders, in GGUF's vocabulary.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/weights/hugging_face/families.h"

namespace hearth::hugging_face {

// "model.layers.3.self_attn.q_proj.weight" is "blk.3.attn_q.weight". Nothing for a tensor that is
// no part of the text model: the image half of a model that has one, and tables that are computed.
// A name nobody knows stays as it is, for the loader to refuse.
std::optional<std::string> gguf_tensor_name(std::string_view name, const Family& family);

}  // namespace hearth::hugging_face
