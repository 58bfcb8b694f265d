// A small vocabulary for tests of masks: all bytes, and tokens that cross the borders of
// characters, strings and other lexemes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/token_trie.h"

namespace hearth::testing {

inline constexpr grammar::TokenId kEndToken = 0;

inline std::shared_ptr<const grammar::TokenTrie> byte_vocabulary() {
  std::vector<std::string> bytes = {"", ""};  // the end token, and a control token
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* const text : {"{\"",         "\":",      "\": \"",   "\",",
                                 "\",\"",       "\"}",      "\"}}",     "\"]",
                                 "],",          "[[",       "[{",       "},{",
                                 "}]",          ", ",       ": ",       "null",
                                 "true",        "false",    "tr",       "ue",
                                 "nu",          "12",       "123",      "100",
                                 "0.",          ".5",       "-1",       "e+",
                                 "name",        "na",       "me\"",     "name\":",
                                 "\"name\": ",  "ab",       "abc",      "a\"",
                                 "b\":",        "com",      ".com",     "org",
                                 "\\n",         "\\u",      "\\u00",    "\\ud83d",
                                 "\\\"",        "\\\\",     "\xc3",     "\xc3\xa4",
                                 "\xa4\xc3",    "\xf0\x9f", "\x98\x80", "\xf0\x9f\x98\x80",
                                 "2026",        "-0",       "T1",       ":00",
                                 "Z\"",         "  ",       "    ",     "        ",
                                 "         ",   "\n  ",     "x\"",      "xy",
                                 "hello world", " the",     "{}",       "[]",
                                 "\"\"",        "\"\",",    "next",     "\"next\":",
                                 "v\":7"})
    bytes.emplace_back(text);
  bytes.emplace_back("ab");  // the same bytes twice
  return grammar::TokenTrie::create(std::move(bytes), {kEndToken});
}

}  // namespace hearth::testing
