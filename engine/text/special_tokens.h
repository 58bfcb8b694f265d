// Finds the tokens that are matched in a text before anything else: control tokens, where asked
// for, and those a model's makers added, always. Immutable after creation: any thread.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/text/string_ids.h"
#include "engine/text/vocabulary.h"

namespace hearth {

class SpecialTokens {
 public:
  // Keeps views of the vocabulary's texts.
  explicit SpecialTokens(const Vocabulary& vocabulary);

  struct Part {
    std::string_view text;               // plain text, or what the token was read from
    std::optional<std::uint32_t> token;  // nothing: plain text
  };
  // The text in order, the leftmost and longest token first. Parts are never empty.
  void split(std::string_view text, bool parse_control,
             const std::function<void(const Part&)>& part) const;

 private:
  struct Match {
    std::uint32_t id = 0;
    std::size_t bytes = 0;  // 0: none
  };
  Match match(std::string_view text, bool parse_control) const;

  const Vocabulary& vocabulary_;
  StringIds ids_;
  // By first byte: the lengths that tokens have, longest first.
  std::array<std::vector<std::size_t>, 256> lengths_;
};

}  // namespace hearth
