// Whether two models can work on the same token ids: every id must mean the same to both. Pure.
#pragma once

#include <optional>
#include <string>

#include "engine/text/vocabulary.h"

namespace hearth {

// The first difference, as the end of a sentence whose subject is the model of the first
// vocabulary: "its token 17 is 'a', not 'b'". Empty if every id means the same.
std::optional<std::string> vocabulary_difference(const Vocabulary& there, const Vocabulary& here);

}  // namespace hearth
