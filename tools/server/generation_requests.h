// A client's request as requests to the engine: its template and tokenizer make the prompts, which
// must fit the model.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "engine/generation.h"
#include "tools/server/api_error.h"
#include "tools/server/openai_request.h"
#include "tools/server/served_model.h"

namespace hearth {

// When to give up on a request.
struct RequestUntil {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();  // of the whole request
  // Any thread may set it. May be null.
  const std::atomic<bool>* cancelled = nullptr;

  bool is_cancelled() const { return cancelled != nullptr && *cancelled; }
  // Until the deadline, if there is one; at least 0.
  std::optional<std::chrono::duration<double>> time_left() const;
  bool is_late() const;
};

struct GenerationRequests {
  // One per completion: `n` of the first prompt, then `n` of the second, and so on.
  std::vector<GenerationRequest> requests;
  bool begins_in_reasoning = false;  // the replies continue with reasoning that the prompt began
};

// May take seconds. Returns soon after `until.cancelled` was set.
std::variant<GenerationRequests, ApiError> make_generation_requests(const ServedModel& model,
                                                                    ApiKind kind,
                                                                    const ApiRequest& request,
                                                                    const RequestUntil& until);

}  // namespace hearth
