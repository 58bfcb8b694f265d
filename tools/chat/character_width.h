// How many columns of a terminal a character takes.
#pragma once

#include <cstdint>

namespace hearth {

// 0 for combining marks and control characters, 2 for East Asian wide characters and emoji, else 1.
// Sequences of emoji that terminals may draw as one are counted one by one, which is never too
// little: a line may be broken early, but not in the middle of a word.
uint32_t character_width(char32_t character);

// Whether a line may be broken between two neighbours that are not spaces: beside ideographs and
// emoji, but not inside a grapheme, after an opening bracket or before closing punctuation.
bool may_break_between(char32_t left, char32_t right);

}  // namespace hearth
