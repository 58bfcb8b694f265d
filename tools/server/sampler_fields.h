// The fields of a request that set the less common samplers, as llama.cpp's and
// text-generation-webui's APIs spell them. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "tools/server/api_error.h"

namespace hearth {

bool is_sampler_field(std::string_view name);

// Reads them over what `generation` has. Returns what is wrong with the first bad one. A setting
// that has two names may be given under both if they agree.
std::optional<ApiError> read_sampler_fields(const nlohmann::json& body,
                                            GenerationRequest& generation);

// The tokens of a text, without any special ones.
using EncodeText = std::function<std::vector<uint32_t>(std::string_view text)>;

// `logit_bias`: an object whose keys are token ids or texts, or a list of [id or text, bias] pairs.
// A text stands for all its tokens; a bias of false bans them. Biases of the same token add up.
std::optional<ApiError> read_logit_bias(const nlohmann::json& field, uint32_t vocabulary,
                                        const EncodeText& encode, std::vector<LogitBias>& biases);

}  // namespace hearth
