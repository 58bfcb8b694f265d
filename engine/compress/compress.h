// Shortens a prompt: keeps the units of a text that a model finds most surprising in their context,
// within a budget per part. README.md in this folder says which. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compress/text_units.h"

namespace hearth {

// A token of the text: where it begins, and how surprising it is there.
struct ScoredToken {
  size_t begin = 0;      // byte
  double surprisal = 0;  // -ln p
};

// A part of the text with a budget of its own: a document, a question.
struct CompressPart {
  size_t begin = 0, end = 0;  // bytes
  double ratio = 1;           // of its tokens to keep; 1 keeps the part as it is
};

struct CompressedPart {
  std::string text;
  uint32_t tokens = 0;       // of the part before
  uint32_t kept_tokens = 0;  // of those; the text that is left may have a few more or fewer
};

// Whether a ratio makes sense: above 0 and at most 1.
bool is_compression_ratio(double ratio);
// The error message for a ratio that is not allowed.
std::string wrong_ratio(double ratio);

// `tokens` cover the text, in order. Parts are in order and do not overlap.
std::vector<CompressedPart> compress_parts(std::string_view text,
                                           std::span<const ScoredToken> tokens,
                                           std::span<const CompressPart> parts, CompressUnit unit);

}  // namespace hearth
