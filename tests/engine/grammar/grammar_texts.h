// Whether a grammar accepts a text, byte by byte.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "engine/grammar/matcher.h"
#include "tests/engine/grammar/vocabulary.h"

namespace hearth::testing {

inline const std::shared_ptr<const grammar::TokenTrie>& small_trie() {
  static const auto trie = byte_vocabulary();
  return trie;
}

inline bool accepts(const std::shared_ptr<const grammar::Grammar>& grammar, std::string_view text) {
  grammar::Matcher matcher(grammar, small_trie());
  return (text.empty() || matcher.accept_bytes(text)) && matcher.may_end();
}

// The grammar, or null and a failure of the test.
inline std::shared_ptr<const grammar::Grammar> compiled(
    const Result<std::shared_ptr<const grammar::Grammar>>& result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : nullptr;
}

inline std::string refusal(const Result<std::shared_ptr<const grammar::Grammar>>& result) {
  if (result.ok()) return "(compiled)";
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  return result.error().message;
}

}  // namespace hearth::testing
