// Schemas, regular expressions and grammars: any text compiles or is refused, and masks allow
// exactly the tokens that are accepted one by one.
#include <cstdlib>

#include "engine/grammar/matcher.h"
#include "tests/engine/grammar/vocabulary.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {

// The first byte says what the rest is.
std::vector<std::string> fuzz::seeds() {
  return {
      R"(j{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", null]}}})",
      R"(j{"oneOf": [{"required": ["a"]}, {"not": {"patternProperties": {"^x": false}}}], "minProperties": 1})",
      R"(j{"$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "contains": {"type": "null"}}}, "$ref": "#/$defs/t"})",
      R"(j{"if": {"const": 1}, "then": {"multipleOf": 2}, "else": {"format": "date", "maxLength": 9}})",
      "r^(?!no)[a-z\\u00e4]{1,3}(-\\d+)*$",
      "groot ::= \"a\" [^b-d\\n]{2,} (x | \"\")\nx ::= \"(\" root? \")\"\n",
      "lstart: item (\",\" item)*\nitem: /[0-9]+/ | \"[\" start \"]\" | %json {\"type\": "
      "\"null\"}\n%ignore \" \"\n",
  };
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto compile = [&] {
    switch (data[0]) {
      case 'r':
        return grammar::Grammar::compile_regex(text);
      case 'g':
        return grammar::Grammar::compile_gbnf(text);
      case 'l':
        return grammar::Grammar::compile_lark(text);
      default:
        return grammar::Grammar::compile_json_schema(text);
    }
  };
  const auto grammar = compile();
  if (!grammar.ok()) return 0;
  static const auto trie = testing::byte_vocabulary();
  grammar::Matcher matcher(*grammar, trie);
  std::vector<std::uint32_t> mask(trie->mask_words());
  for (std::size_t step = 0; step < 6 && !matcher.ended(); ++step) {
    matcher.mask(mask);
    std::vector<grammar::TokenId> allowed;
    for (grammar::TokenId id = 0; id < trie->vocabulary_size(); ++id) {
      const bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
      if (bit != matcher.allows(id) && !matcher.failed()) std::abort();
      if (bit) allowed.push_back(id);
    }
    if (allowed.empty()) return 0;
    if (!matcher.accept(allowed[(data[size / 2] + step * 31) % allowed.size()]) &&
        !matcher.failed())
      std::abort();
  }
  return 0;
}
