// The fields of a request that say how its text is found: beam search with `beams` (also
// `num_beams`, or `use_beam_search` with `best_of` or `n`), `length_penalty` and `early_stopping`;
// contrastive decoding with `cd_alpha` and `cd_beta`; contrastive search with `penalty_alpha` and
// `top_k`; guidance with `guidance_scale` and `negative_prompt`, as text-generation-webui has them.
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "tools/server/api_error.h"

namespace hearth {

struct ApiRequest;

// Reads them into a request whose other fields have been read. Fields that contradict each other
// are an error, and so are settings of sampling together with beam search or contrastive search,
// unless their values ask for nothing.
std::optional<ApiError> read_decoding_fields(const nlohmann::json& body, ApiRequest& request);

}  // namespace hearth
