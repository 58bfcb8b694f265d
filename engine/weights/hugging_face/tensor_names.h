// Translates tensor names of Hugging Face folders to GGUF's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/weights/hugging_face/families.h"

namespace hearth::hugging_face {

// "model.layers.3.self_attn.q_proj.weight" becomes "blk.3.attn_q.weight". Empty for tensors that
// the text model does not use: those for images, and tables that are computed. An unknown name is
// returned unchanged, so that the loader refuses it.
std::optional<std::string> gguf_tensor_name(std::string_view name, const Family& family);

}  // namespace hearth::hugging_face
