// Translates config.json to GGUF's keys; README.md of this folder lists them.
#pragma once

#include "engine/weights/hugging_face/config_reader.h"
#include "engine/weights/hugging_face/families.h"
#include "engine/weights/metadata.h"
#include "runtime/result.h"

namespace hearth::hugging_face {

struct Config {
  const Family* family = nullptr;
  // Whether output and embedding are the same matrix; empty if config.json does not say.
  std::optional<bool> tied;
  Metadata metadata;
};

// `root` is the root of config.json. Errors name the field; the caller adds the file name.
Result<Config> translate_config(const nlohmann::json& root);

// Sets the tokenizer's keys for the ids that begin and end a text. `root` is that of config.json or
// of generation_config.json, which is read later and wins.
Status translate_token_ids(const nlohmann::json& root, Metadata& metadata);

// The sampling settings of generation_config.json, whatever their values: sampling_defaults()
// judges them. REQUIRES: an object.
void translate_sampling(const nlohmann::json& root, Metadata& metadata);

// For config.cpp, implemented in rope.cpp: sets everything under <architecture>.rope. `config` is
// the text model's part of config.json.
struct RopeShape {
  std::uint64_t head_dim = 0;
  std::uint64_t context_length = 0;
};
Status translate_rope(const ConfigReader& config, const Family& family, const RopeShape& shape,
                      Metadata& metadata);

}  // namespace hearth::hugging_face
