// What is only for generating: numbers with one spelling, and blanks where models put them. Judging
// an instance still accepts every spelling.
#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"

namespace hearth::grammar {
namespace {

using testing::accepts;
using testing::compiled;

struct GeneratedCase {
  const char* schema;
  std::vector<const char*> written;
  std::vector<const char*> only_judged;  // equal to a valid value, but spelt otherwise
};

TEST(GeneratedJson, ConstantsAreWrittenAsInTheSchema) {
  const GeneratedCase cases[] = {
      {R"({"enum": [1, 2]})", {"1", "2"}, {"1.0", "2.0"}},
      {R"({"const": 3})", {"3"}, {"3.0"}},
      {R"({"const": 3.0})", {"3.0"}, {"3"}},
      {R"({"type": "integer", "const": 3.0})", {"3"}, {}},
      {R"({"enum": [2.50, 7]})", {"2.50", "7"}, {"2.5", "7.0"}},
      {R"({"const": 1e3})", {"1e3"}, {"1000", "1000.0"}},
      {R"({"const": 1e3, "maximum": 2000})", {"1000"}, {"1000.0"}},
      {R"({"allOf": [{"const": 2.50}, {"const": 2.5}]})", {"2.5"}, {}},
      {R"({"const": {"a": 1, "b": [1]}})",
       {R"({"a":1,"b":[1]})"},
       {R"({"a":1.0,"b":[1]})", R"({"a":1,"b":[1.0]})"}},
      {R"({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": true})",
       {"[1,2]", "[2]"},
       {"[1.0,2]"}},
      {R"({"anyOf": [{"const": 1}, {"type": "number", "minimum": 5}]})",
       {"1", "5", "5.50"},
       {"1.0"}},
  };
  for (const GeneratedCase& one : cases) {
    SCOPED_TRACE(one.schema);
    const auto judged = compiled(Grammar::compile_json_schema(one.schema));
    const auto generated = compiled(
        Grammar::compile_json_schema(one.schema, {.max_whitespace = 0, .generates = true}));
    ASSERT_TRUE(judged != nullptr && generated != nullptr);
    for (const char* const text : one.written) {
      EXPECT_TRUE(accepts(generated, text)) << text;
      EXPECT_TRUE(accepts(judged, text)) << text;
    }
    for (const char* const text : one.only_judged) {
      EXPECT_FALSE(accepts(generated, text)) << text;
      EXPECT_TRUE(accepts(judged, text)) << text;
    }
  }
}

// A model that likes zeros wrote 3.000... up to the token limit.
TEST(GeneratedJson, MultiplesHaveAsManyDecimalsAsTheirDivisor) {
  const GeneratedCase cases[] = {
      {R"({"type": "number", "minimum": 0, "maximum": 9, "multipleOf": 1})",
       {"3", "0"},
       {"3.0", "3.000", "-0", "-0.00"}},
      {R"({"multipleOf": 0.01})", {"19.90", "19.9", "20", "0.00"}, {"19.900", "-0.00"}},
      {R"({"type": "integer", "multipleOf": 0.5})", {"3"}, {}},
      {R"({"multipleOf": 0.5, "enum": [2.500]})", {"2.5"}, {"2.500"}},
  };
  for (const GeneratedCase& one : cases) {
    SCOPED_TRACE(one.schema);
    const auto judged = compiled(Grammar::compile_json_schema(one.schema));
    const auto generated = compiled(Grammar::compile_json_schema(one.schema, {.generates = true}));
    ASSERT_TRUE(judged != nullptr && generated != nullptr);
    for (const char* const text : one.written) EXPECT_TRUE(accepts(generated, text)) << text;
    for (const char* const text : one.only_judged) {
      EXPECT_FALSE(accepts(generated, text)) << text;
      EXPECT_TRUE(accepts(judged, text)) << text;
    }
  }
}

TEST(GeneratedJson, SingleBlanksComeAfterCommasAndColons) {
  const char* const schema = R"({"type": "object", "properties": {"a": {"type": "integer"},
      "b": {"type": "array"}}, "required": ["a", "b"], "additionalProperties": false})";
  const SchemaOptions options{.single_blanks = true};
  const auto alone = compiled(Grammar::compile_json_schema(schema, options));
  const auto in_text = compiled(
      Grammar::compile_lark("start: \"<\" %json " + std::string(schema) + " \">\"\n", options));
  ASSERT_TRUE(alone != nullptr && in_text != nullptr);
  const auto both = [&](const std::string& text) {
    EXPECT_EQ(accepts(alone, text), accepts(in_text, "<" + text + ">")) << text;
    return accepts(alone, text);
  };
  EXPECT_TRUE(both(R"({"a":1,"b":[1,2]})"));
  EXPECT_TRUE(both(R"({"a": 1, "b": [1, 2]})"));
  for (const char* const text :
       {R"({ "a": 1, "b": []})", R"({"a":  1, "b": []})", R"({"a" : 1, "b": []})",
        R"({"a": 1 , "b": []})", R"({"a": 1,  "b": []})", R"({"a": 1, "b": [ ]})",
        R"({"a": 1, "b": [] })", "{\"a\":\n1, \"b\": []}", "{\"a\":\t1, \"b\": []}"})
    EXPECT_FALSE(both(text)) << text;
}

}  // namespace
}  // namespace hearth::grammar
