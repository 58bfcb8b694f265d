#include "engine/sampling/request_samplers.h"

#include <array>
#include <bit>
#include <utility>

#include "engine/sampling/stages.h"

namespace hearth {

RequestSamplers::RequestSamplers(const SamplingOptions& options, std::vector<std::string> breakers,
                                 TokenText text, std::span<const uint32_t> prompt,
                                 uint32_t most_dry)
    : mirostat_(uses_mirostat(options)), mu_(2 * options.mirostat_tau) {
  if (uses_stages(options)) stages_ = make_stages(options);
  if (!uses_dry(options)) return;
  const int32_t last = options.dry_penalty_last_n;
  dry_.emplace(DryOptions{.multiplier = options.dry_multiplier,
                          .base = options.dry_base,
                          .allowed_length = options.dry_allowed_length,
                          .last_tokens = last < 0 ? 0 : static_cast<uint32_t>(last),
                          .breakers = std::move(breakers),
                          .most = most_dry},
               std::move(text), prompt);
}

void RequestSamplers::append(uint32_t token) {
  if (dry_) dry_->append(token);
}

void RequestSamplers::rewind(std::span<const uint32_t> tokens) {
  if (dry_) dry_->restart(tokens);
}

void RequestSamplers::add_to(params::SamplingRow& row, const Place& place,
                             std::vector<uint32_t>& words) const {
  if (stages_) {
    params::SamplingStages stages = *stages_;
    stages.mirostat_mu = mu_;
    stages.mirostat_read_slot = place.read_slot;
    stages.mirostat_write_slot = place.write_slot;
    row.stages = static_cast<uint32_t>(words.size());
    using Words = std::array<uint32_t, sizeof(stages) / sizeof(uint32_t)>;
    const auto bits = std::bit_cast<Words>(stages);
    words.insert(words.end(), bits.begin(), bits.end());
  }
  if (!dry_) return;
  const std::vector<params::TokenBias> penalties = dry_->penalties(place.path);
  if (penalties.empty()) return;
  row.flags |= params::kSamplingDry;
  row.dry = static_cast<uint32_t>(words.size());
  words.push_back(static_cast<uint32_t>(penalties.size()));
  for (const auto& [token, penalty] : penalties) {
    words.push_back(token);
    words.push_back(std::bit_cast<uint32_t>(penalty));
  }
}

}  // namespace hearth
