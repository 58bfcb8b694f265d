// A token that only the device knows yet: it stands for the id at a place of those that the
// device's steps sample (StepRunner::sampled_ids()). A step that computes it reads the id there. It
// equals no token of a vocabulary.
#pragma once

#include <cstdint>

#include "engine/ids.h"
#include "params/embed.h"

namespace hearth {

constexpr TokenId unread_token(std::uint32_t place) { return params::kSampledId | place; }
constexpr bool is_unread(TokenId id) { return (id & params::kSampledId) != 0; }
constexpr std::uint32_t place_of_unread(TokenId id) { return id & ~params::kSampledId; }

}  // namespace hearth
