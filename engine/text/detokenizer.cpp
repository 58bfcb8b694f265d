#include "engine/text/detokenizer.h"

#include <algorithm>

#include "engine/text/utf8.h"

namespace hearth {

std::string Detokenizer::push(std::uint32_t id) {
  std::string piece = tokenizer_.piece(id, special_ || std::ranges::binary_search(shown_, id));
  if (!after_text_ && !piece.empty() && !tokenizer_.is_control(id)) {
    after_text_ = true;
    if (tokenizer_.adds_space_prefix() && piece.starts_with(' ')) piece.erase(0, 1);
  }
  pending_ += piece;
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    text += step.kind == Utf8Step::Kind::kCharacter ? rest.substr(0, step.bytes)
                                                    : kReplacementCharacter;
    at += step.bytes;
  }
  pending_.erase(0, at);
  return text;
}

std::string Detokenizer::finish() {
  // pending_ is the beginning of one character; anything else has been returned already.
  std::string text(pending_.empty() ? std::string_view() : kReplacementCharacter);
  pending_.clear();
  return text;
}

}  // namespace hearth
