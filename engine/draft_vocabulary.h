// Whether a draft model can propose tokens for another model: their ids must mean the same. Pure.
#pragma once

#include <optional>
#include <string>

#include "engine/text/vocabulary.h"

namespace hearth {

// The first difference, as the end of a sentence: "token 17 is \"a\" there and \"b\" here". Empty
// if every id means the same.
std::optional<std::string> vocabulary_difference(const Vocabulary& draft, const Vocabulary& target);

}  // namespace hearth
