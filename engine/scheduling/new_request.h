// What a caller asks the scheduler for, and whether it could ever be run. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/ids.h"
#include "engine/scheduling/scheduler_limits.h"

namespace hearth {

struct ForkPoint {
  RequestId parent = 0;
  std::uint32_t position = 0;  // most leading tokens to share with it
};

struct NewRequest {
  std::span<const TokenId> prompt;  // copied
  std::uint32_t max_new_tokens = 0;
  std::int32_t priority = 0;     // higher first
  std::uint64_t cache_salt = 0;  // requests with different salts share no cached prefix
  // Shares the parent's blocks instead of computing them, as far as the two prompts agree. The
  // request waits until the parent has computed that far; if the parent ends first, it is an
  // ordinary request.
  std::optional<ForkPoint> fork;
  bool with_host = false;   // see Scheduler::set_with_host
  std::uint32_t seats = 1;  // sequences that the request becomes by Scheduler::fork()
  // Plans a logit row for every prompt token that another one follows (BatchMember::scored). Such a
  // request shares nothing before those rows are planned, and ignores `fork`.
  bool score_prompt = false;
  // With a shadow: a second sequence with this prompt, which then gets the request's generated
  // tokens. It takes a slot and blocks of its own, and samples in the same steps as the request
  // (BatchMember::shadow). Everything that is said about the request applies to both. Nothing can
  // be proposed for such a request. Empty: no shadow.
  std::span<const TokenId> shadow_prompt;  // copied
  // Every token is computed whenever the request is admitted: it shares no cached prefix, ignores
  // `fork` and is never swapped out. For requests of which the device keeps more than blocks.
  bool compute_all = false;
  // The most candidates per token that the request proposes with propose_candidates(), and it
  // proposes nothing else. They are no guesses: others are preempted to make room for them. The
  // budget of a step and its logit rows may still cut them short, but not to none. 0: none.
  std::uint32_t candidates = 0;
};

enum class Refusal : std::uint8_t { kNone, kInvalid, kTooLong, kQueueFull };

struct AddResult {
  Refusal refusal = Refusal::kNone;
  std::string message;  // for the user, with the limits that matter; empty if accepted
  bool accepted() const { return refusal == Refusal::kNone; }
};

// Whether the request could ever run within these limits, even alone. Pure.
AddResult check_request(const SchedulerLimits& limits, const NewRequest& request);

}  // namespace hearth
