// Finds the tokens that are matched in a text before any others: always the user-defined ones, and
// control tokens on request. Immutable after creation; any thread may use it.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/text/string_ids.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace hearth {

class SpecialTokens {
 public:
  // Keeps views of the vocabulary's strings, which must outlive it.
  explicit SpecialTokens(const Vocabulary& vocabulary);

  // Where control tokens are read: nowhere, or everywhere but in `literal`.
  struct Where {
    bool parse_control = false;
    std::span<const ByteRange> literal = {};
  };
  struct Part {
    std::string_view text;               // plain text, or the text of the token
    std::optional<std::uint32_t> token;  // unset: plain text
  };
  // Calls `part` for each part of the text in order; the leftmost, longest token wins. Parts are
  // never empty.
  void split(std::string_view text, const Where& where,
             const std::function<void(const Part&)>& part) const;

 private:
  struct Match {
    std::uint32_t id = 0;
    std::size_t bytes = 0;  // 0: none
  };
  // What the text begins with. A control token may have at most `max_control_bytes`.
  Match match(std::string_view text, std::size_t max_control_bytes) const;

  const Vocabulary& vocabulary_;
  StringIds ids_;
  // The lengths of the tokens that begin with each byte, longest first.
  std::array<std::vector<std::size_t>, 256> lengths_;
};

}  // namespace hearth
