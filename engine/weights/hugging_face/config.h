// config.json in GGUF's vocabulary: README.md of this folder lists the keys.
#pragma once

#include "engine/weights/hugging_face/config_reader.h"
#include "engine/weights/hugging_face/families.h"
#include "engine/weights/metadata.h"
#include "runtime/result.h"

namespace hearth::hugging_face {

struct Config {
  const Family* family = nullptr;
  // Whether output and embedding are one matrix; nothing where config.json does not say.
  std::optional<bool> tied;
  Metadata metadata;
};

// The root of config.json. Errors name the field; the caller knows the file.
Result<Config> translate_config(const nlohmann::json& root);

// The ids that end a text, and the one that begins it, as keys of the tokenizer. `root` is that of
// config.json or of generation_config.json, whose word is later.
Status translate_token_ids(const nlohmann::json& root, Metadata& metadata);

// The sampling settings of generation_config.json, whatever their values: sampling_defaults()
// judges them. REQUIRES: an object.
void translate_sampling(const nlohmann::json& root, Metadata& metadata);

// For config.cpp, in rope.cpp: everything under <architecture>.rope. `root` is the text model's
// part of config.json.
struct RopeShape {
  std::uint64_t head_dim = 0;
  std::uint64_t context_length = 0;
};
Status translate_rope(const ConfigReader& config, const Family& family, const RopeShape& shape,
                      Metadata& metadata);

}  // namespace hearth::hugging_face
