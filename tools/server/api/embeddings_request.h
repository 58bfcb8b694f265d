// Requests for embeddings, and the vectors as replies have them. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/generation.h"
#include "tools/server/api_error.h"

namespace hearth {

struct EmbeddingsRequest {
  using Input = std::variant<std::string, std::vector<uint32_t>>;
  std::vector<Input> inputs;       // texts or token ids
  std::optional<Pooling> pooling;  // unset: the model's own
  uint32_t dimensions = 0;         // 0: all
  bool base64 = false;
  bool truncate = false;  // inputs that are too long are cut short
  int32_t priority = 0;
};

// `vocabulary` is what token ids are below, `width` how many dimensions there are.
std::variant<EmbeddingsRequest, ApiError> parse_embeddings_request(std::string_view body,
                                                                   uint32_t vocabulary,
                                                                   uint32_t width);

// Ollama's: /api/embed with `input`, or /api/embeddings, which is older, with a `prompt`.
enum class OllamaEmbedding { kEmbed, kEmbeddings };
std::variant<EmbeddingsRequest, ApiError> parse_ollama_embedding(OllamaEmbedding call,
                                                                 std::string_view body,
                                                                 uint32_t width);

// The first `dimensions` (0: all) of a vector, scaled to length 1.
std::vector<float> shortened(std::span<const float> vector, uint32_t dimensions);
// Little-endian f32 in base64.
std::string to_base64(std::span<const float> vector);

}  // namespace hearth
