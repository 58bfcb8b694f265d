// What the samplers of one request remember from token to token, and what they add to a step: the
// stages and DRY penalties of its rows. For one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sampling/dry.h"
#include "engine/sampling_options.h"
#include "params/sampling.h"

namespace hearth {

class RequestSamplers {
 public:
  // `options` are checked, and only_listed(). `most_dry` is the most tokens that a row's DRY list
  // may hold.
  RequestSamplers(const SamplingOptions& options, std::vector<std::string> breakers, TokenText text,
                  std::span<const uint32_t> prompt, uint32_t most_dry);

  // DRY penalties depend on the newest token, so the host has to know it before the next step.
  // Computing them here, from the matches of the token before, takes microseconds; on the device
  // every row would search its whole text again.
  bool need_host() const { return dry_.has_value(); }
  // Mirostat's state after a proposed token depends on that token's own row, so proposals cannot be
  // verified in one step.
  bool allow_proposals() const { return !mirostat_; }

  void append(uint32_t token);
  // The sequence is only these tokens now. Not with mirostat.
  void rewind(std::span<const uint32_t> tokens);
  // Mirostat's mu after the last appended token, as the device reports it.
  void set_mirostat(float mu) { mu_ = mu; }

  struct Place {
    std::span<const uint32_t> path = {};  // proposed tokens before the row's
    // The slot whose mu is newer than ours, because a token is still pending there; and the slot
    // that keeps the updated one. params::kNoSlot: none.
    uint32_t read_slot = params::kNoSlot, write_slot = params::kNoSlot;
  };
  // Adds what the row needs to the step's words, and its place there to the row.
  void add_to(params::SamplingRow& row, const Place& place, std::vector<uint32_t>& words) const;

 private:
  std::optional<params::SamplingStages> stages_;
  std::optional<DryPenalties> dry_;
  bool mirostat_ = false;
  float mu_ = 0;
};

}  // namespace hearth
