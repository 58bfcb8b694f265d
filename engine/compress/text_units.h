// Divides a text into the units that compression keeps or drops. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hearth {

enum class CompressUnit { kToken, kPhrase, kSentence };
// "token", "phrase" or "sentence"; empty for any other word.
std::optional<CompressUnit> compress_unit(std::string_view name);

// A piece of the text, with the white space after it. Units follow each other without gaps.
struct TextUnit {
  size_t begin = 0, end = 0;  // bytes
  bool must_stay = false;     // part of a question, an instruction, code or a number
  size_t sentence = 0;        // which sentence it is part of
};

// `tokens` are where tokens begin, in increasing order; only units of kToken use them.
std::vector<TextUnit> divide_text(std::string_view text, CompressUnit unit,
                                  std::span<const size_t> tokens);

// Where the last paragraph begins, if it asks or instructs; otherwise the end of the text.
size_t find_question(std::string_view text);

}  // namespace hearth
