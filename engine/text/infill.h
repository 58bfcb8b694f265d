// Prompts for filling a gap in a text ("fill in the middle"): the model reads what is before and
// after the gap, and then writes what belongs there. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace hearth {

struct InfillTokens {
  std::uint32_t prefix = 0, suffix = 0, middle = 0;
};

// The model's infill tokens: those that its file names, or tokens with well-known names. Empty if
// the model has not got all three.
std::optional<InfillTokens> find_infill_tokens(const Vocabulary& vocabulary);

// BOS if the vocabulary wants it, then prefix token, text before the gap, suffix token, text after
// it, middle token.
std::vector<std::uint32_t> infill_prompt(const Tokenizer& tokenizer, const InfillTokens& infill,
                                         std::span<const std::uint32_t> before,
                                         std::string_view after);

}  // namespace hearth
