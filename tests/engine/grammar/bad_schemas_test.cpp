// Schemas and grammars that someone sends to make the server stall: each compiles or is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"
#include "tests/support/sanitizers.h"

namespace hearth::grammar {
namespace {

using testing::accepts;
using testing::compiled;
using testing::refusal;

std::string with_properties(int count) {
  std::string schema = R"({"type": "object", "properties": {)";
  for (int i = 0; i < count; ++i)
    schema += fmt::format("{}\"property{}\": {{\"type\": \"integer\"}}", i == 0 ? "" : ",", i);
  return schema + "}}";
}

TEST(BadSchemas, HundredThousandProperties) {
  EXPECT_EQ(refusal(Grammar::compile_json_schema(with_properties(100'000))),
            "properties at #: more than 10000 in one object");
  const auto grammar = compiled(Grammar::compile_json_schema(with_properties(5'000)));
  EXPECT_TRUE(accepts(grammar, R"({"property7":1,"property4999":2})"));
  EXPECT_FALSE(accepts(grammar, R"({"property7":"x"})"));
}

TEST(BadSchemas, DeepNesting) {
  std::string schema, end;
  for (int i = 0; i < 10'000; ++i) schema += R"({"items": )", end += "}";
  EXPECT_NE(refusal(Grammar::compile_json_schema(schema + "{}" + end)).find("nested"),
            std::string::npos);
  std::string pattern(10'000, '(');
  EXPECT_FALSE(Grammar::compile_regex(pattern + std::string(10'000, ')')).ok());
  EXPECT_FALSE(
      Grammar::compile_gbnf("root ::= " + pattern + "\"a\"" + std::string(10'000, ')')).ok());
}

TEST(BadSchemas, DeepTextsAreAccepted) {
  const auto grammar = compiled(Grammar::compile_json_schema("{}"));
  EXPECT_TRUE(accepts(grammar, std::string(5'000, '[') + std::string(5'000, ']')));
}

TEST(BadSchemas, ExponentialExpressions) {
  for (const char* const pattern : {"(a|b)*a(a|b){18}", "((a{0,100}){0,100}){0,100}", "(x+x+)+y",
                                    "([a-z]{1,50}-){1,50}[a-z]{1,50}"}) {
    const auto result = Grammar::compile_regex(pattern);
    if (!result.ok()) continue;
    Matcher matcher(*result, testing::small_trie());
    std::vector<std::uint32_t> mask(testing::small_trie()->mask_words());
    matcher.mask(mask);
    for (int i = 0; i < 60 && matcher.accept_bytes(i % 3 == 0 ? "a" : "b"); ++i) matcher.mask(mask);
  }
}

TEST(BadSchemas, ExponentialIntersections) {
  // An intersection of the kind that needs 2^n states.
  std::string schema = R"({"allOf": [)";
  for (int i = 1; i < 30; ++i)
    schema += fmt::format("{}{{\"type\": \"string\", \"pattern\": \"^(a|b)*a(a|b){{{}}}$\"}}",
                          i == 1 ? "" : ",", i);
  const auto result = Grammar::compile_json_schema(schema + "]}");
  if (result.ok()) {
    EXPECT_FALSE(accepts(*result, "\"b\""));
  }
}

TEST(BadSchemas, CatastrophicAllOf) {
  std::string schema = R"({"allOf": [)";
  for (int i = 0; i < 20; ++i) {
    schema += fmt::format("{}{{\"anyOf\": [", i == 0 ? "" : ",");
    for (int k = 0; k < 10; ++k)
      schema +=
          fmt::format("{}{{\"type\": \"object\", \"properties\": {{\"p{}\": {{\"const\": {}}}}}}}",
                      k == 0 ? "" : ",", i, k);
    schema += "]}";
  }
  EXPECT_NE(refusal(Grammar::compile_json_schema(schema + "]}")).find("too many combinations"),
            std::string::npos);
}

TEST(BadSchemas, CyclesOfReferences) {
  EXPECT_NE(
      refusal(
          Grammar::compile_json_schema(
              R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}})"))
          .find("refers back to itself"),
      std::string::npos);
  // Two recursive schemas at once have finitely many combinations.
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
          "a": {"type": "array", "items": {"$ref": "#/$defs/b"}}, "b": {"type": "array", "items": {"$ref": "#/$defs/a"}}}})"));
  EXPECT_TRUE(accepts(grammar, "[[[]],[]]"));
  EXPECT_FALSE(accepts(grammar, "[1]"));
}

// Many combinations make the compiler look whether each is possible, which must not follow cycles.
TEST(BadSchemas, CombinationsOfRecursiveSchemas) {
  if (hearth::testing::kSanitized) GTEST_SKIP() << "takes longer than a schema may, sanitized";
  std::string definitions;
  for (int i = 0; i < 10; ++i) {
    definitions += fmt::format("{}\"s{}\": {{\"anyOf\": [", i == 0 ? "" : ",", i);
    for (int k = 0; k < 4; ++k)
      definitions += fmt::format(
          R"({}{{"type": "object", "properties": {{"k{}": {{"const": {}}}, "c": {{"$ref": "#/$defs/s{}"}}}}, "required": ["c"]}})",
          k == 0 ? "" : ",", i, k, (i + 1) % 10);
    definitions += R"(, {"type": "null"}]})";
  }
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"allOf": [{"$ref": "#/$defs/s0"}, {"$ref": "#/$defs/s3"}, {"$ref": "#/$defs/s5"}], "$defs": {)" +
      definitions + "}}"));
  EXPECT_TRUE(accepts(grammar, R"({"k0":1,"c":{"c":null}})"));
  EXPECT_FALSE(accepts(grammar, R"({"k0":7,"c":null})"));
}

TEST(BadSchemas, LargeLimitsCostNothing) {
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"type": "array", "maxItems": 4000000000, "items": {"type": "string", "maxLength": 1000000000, "minLength": 3}})"));
  EXPECT_TRUE(accepts(grammar, "[\"" + std::string(100'000, 'x') + "\"]"));
  EXPECT_FALSE(accepts(grammar, "[\"xx\"]"));
}

TEST(BadSchemas, AmbiguousGrammarsStayLinear) {
  const auto grammar = compiled(Grammar::compile_gbnf("root ::= root root | \"a\" | \"aa\"\n"));
  EXPECT_TRUE(accepts(grammar, std::string(200, 'a')));
}

}  // namespace
}  // namespace hearth::grammar
