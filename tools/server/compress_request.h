// The `compress` field of a request: its prompts or messages are shortened before they are encoded.
// Called on the thread that makes the prompt; waits for the engine, which scores the texts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "engine/prompt_compression.h"
#include "tools/server/openai_request.h"
#include "tools/server/served_model.h"

namespace hearth {

// What compression has done, for the reply.
struct CompressionReport {
  uint32_t tokens_before = 0, tokens_after = 0;  // of the texts, without the template
  double scoring_seconds = 0;
  // Estimated from the time that scoring took per token; 0 if nothing was done.
  double seconds_saved_estimate = 0;
};
nlohmann::json compression_json(const CompressionReport& report);

// Shortens all texts of the request except for system messages. The last message's question has a
// budget of its own. REQUIRES: request.compress, and no prompt is a list of token ids, as
// parse_api_request() makes sure.
Result<CompressionReport> compress_request(const ServedModel& model, ApiRequest& request,
                                           const ScoreUntil& until);

}  // namespace hearth
