#include "engine/scheduling/new_request.h"

#include <utility>

#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

AddResult refuse(Refusal refusal, std::string message) { return {refusal, std::move(message)}; }

std::string count(std::uint64_t number, const char* noun) {
  return std::to_string(number) + ' ' + noun + (number == 1 ? "" : "s");
}

// The part of check_request() for a request with a shadow.
AddResult check_shadow(const SchedulerLimits& limits, const NewRequest& request) {
  const std::uint64_t shadow = std::uint64_t{request.shadow_prompt.size()} + request.max_new_tokens;
  if (shadow > limits.context)
    return refuse(Refusal::kTooLong,
                  "a negative prompt of " + count(request.shadow_prompt.size(), "token") +
                      " and up to " + count(request.max_new_tokens, "new token") + " make " +
                      std::to_string(shadow) + "; the context holds " +
                      std::to_string(limits.context));
  if (limits.max_sequences < 2 || limits.max_step_tokens < 2)
    return refuse(Refusal::kInvalid,
                  "guidance runs two sequences at once; the limit of sequences or of tokens per "
                  "step is 1");
  const auto own = static_cast<std::uint32_t>(request.prompt.size()) + request.max_new_tokens;
  const std::uint64_t needed =
      std::uint64_t{blocks_for(own - 1)} + blocks_for(static_cast<std::uint32_t>(shadow) - 1);
  if (needed > limits.pool_blocks)
    return refuse(Refusal::kTooLong,
                  std::to_string(own) + " tokens, and " + std::to_string(shadow) +
                      " with the negative prompt, need " + count(needed, "block") + " of " +
                      std::to_string(kTokensPerBlock) + " tokens; the KV cache has " +
                      std::to_string(limits.pool_blocks));
  return {};
}

}  // namespace

AddResult check_request(const SchedulerLimits& limits, const NewRequest& request) {
  const std::uint64_t tokens = std::uint64_t{request.prompt.size()} + request.max_new_tokens;
  if (request.prompt.empty()) return refuse(Refusal::kInvalid, "the prompt has no tokens");
  if (request.max_new_tokens == 0)
    return refuse(Refusal::kInvalid, "the request asks for no tokens; ask for at least 1");
  if (request.prompt.size() >= limits.context)
    return refuse(Refusal::kTooLong, "a prompt of " + count(request.prompt.size(), "token") +
                                         " leaves no room for a new token; the context holds " +
                                         std::to_string(limits.context));
  if (tokens > limits.context)
    return refuse(Refusal::kTooLong, "a prompt of " + count(request.prompt.size(), "token") +
                                         " and up to " +
                                         count(request.max_new_tokens, "new token") + " make " +
                                         std::to_string(tokens) + "; the context holds " +
                                         std::to_string(limits.context));
  if (request.seats > limits.max_sequences)
    return refuse(Refusal::kInvalid, "the request runs " + count(request.seats, "sequence") +
                                         " at once; the limit is " +
                                         std::to_string(limits.max_sequences));
  if (request.candidates > 0 && limits.max_proposed == 0)
    return refuse(Refusal::kInvalid,
                  "contrastive search needs steps with room for several candidates per sequence; "
                  "the limit of tokens per step is too low");
  if (!request.shadow_prompt.empty()) return check_shadow(limits, request);
  const std::uint64_t needed =
      std::uint64_t{blocks_for(static_cast<std::uint32_t>(tokens) - 1)} * request.seats +
      (request.candidates > 0 ? request.candidates - 1 : 0);
  if (needed > limits.pool_blocks && request.seats > 1)
    return refuse(Refusal::kTooLong,
                  count(request.seats, "sequence") + " of " + std::to_string(tokens) +
                      " tokens need " + count(needed, "block") + " of " +
                      std::to_string(kTokensPerBlock) + " tokens; the KV cache has " +
                      std::to_string(limits.pool_blocks));
  if (needed > limits.pool_blocks)
    return refuse(
        Refusal::kTooLong,
        std::to_string(tokens) + " tokens" +
            (request.candidates > 0 ? " and " + count(request.candidates, "candidate") + " for each"
                                    : "") +
            " need " + count(needed, "block") + " of " + std::to_string(kTokensPerBlock) +
            " tokens; the KV cache has " + std::to_string(limits.pool_blocks));
  return {};
}

}  // namespace hearth
