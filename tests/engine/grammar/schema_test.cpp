// JSON Schema, keyword by keyword: what is accepted, and what is refused.
#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"

namespace hearth::grammar {
namespace {

using testing::accepts;
using testing::compiled;
using testing::refusal;

struct SchemaCase {
  const char* schema;
  std::vector<const char*> valid, invalid;
};

void check(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& one : cases) {
    SCOPED_TRACE(one.schema);
    const auto grammar = compiled(Grammar::compile_json_schema(one.schema));
    if (grammar == nullptr) continue;
    for (const char* const text : one.valid) EXPECT_TRUE(accepts(grammar, text)) << text;
    for (const char* const text : one.invalid) EXPECT_FALSE(accepts(grammar, text)) << text;
  }
}

TEST(Schema, NegativeZeroIsAnIntegerThatIsNotGenerated) {
  for (const char* const schema :
       {R"({"type": "integer"})", R"({"minimum": 0})", R"({"type": "number", "maximum": 5})"}) {
    SCOPED_TRACE(schema);
    const auto judged = compiled(Grammar::compile_json_schema(schema));
    const auto generated = compiled(Grammar::compile_json_schema(schema, {.generates = true}));
    EXPECT_TRUE(accepts(judged, "-0"));
    EXPECT_FALSE(accepts(generated, "-0"));
    EXPECT_TRUE(accepts(generated, "0"));
  }
  const auto number =
      compiled(Grammar::compile_json_schema(R"({"type": "number"})", {.generates = true}));
  EXPECT_TRUE(accepts(number, "-0.5"));
  EXPECT_TRUE(accepts(number, "-7"));
  const auto constant =
      compiled(Grammar::compile_json_schema(R"({"const": -0})", {.generates = true}));
  EXPECT_TRUE(accepts(constant, "0"));
}

TEST(Schema, Types) {
  check({{R"({})",
          {"1", "\"a\"", "null", "[1,{\"a\":[]}]", "-0.5e+10"},
          {"", "01", "{", "'a'", "1 2"}},
         {R"(true)", {"false"}, {"x"}},
         {R"({"type": "integer"})", {"0", "-17"}, {"1.5", "1e3", "\"1\"", "-", "007"}},
         {R"({"type": ["string", "null"]})", {"\"\"", "null"}, {"0", "true"}},
         {R"({"not": {"type": ["integer", "string"]}})",
          {"1.5", "null", "{}"},
          {"1", "\"\"", "1.0"}}});
}

TEST(Schema, Strings) {
  check({{R"({"type": "string"})",
          {R"("\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00")", "\"\xc3\xa9\""},
          {R"("\x")", R"("\u12")", R"("\uDE00")", R"("\uD83Dx")", "\"\n\"", "\"\xc3\"",
           "\"\xed\xa0\x80\""}},
         {R"({"type": "string", "minLength": 2, "maxLength": 3})",
          {R"("ab")", R"("\u00e4\u00e4\u00e4")", "\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"",
           R"("\ud83d\ude00a")"},
          {R"("a")", R"("abcd")", R"("")"}},
         {R"({"type": "string", "pattern": "^a+$", "maxLength": 3})",
          {R"("aaa")"},
          {R"("aaaa")", R"("")"}},
         {R"({"enum": ["a\n", "b"]})", {R"("a\n")", R"("b")"}, {R"("a")", R"("\u0062")"}},
         {R"({"type": "string", "not": {"enum": ["a", "ab"]}})",
          {R"("b")", R"("")", R"("abc")"},
          {R"("a")", R"("ab")", R"("\u0061")"}}});
}

TEST(Schema, Formats) {
  check({{R"({"type": "string", "format": "date"})",
          {R"("2024-02-29")"},
          {R"("2023-02-29")", R"("2024-13-01")"}},
         {R"({"type": "string", "format": "date-time"})",
          {R"("2026-11-17T12:00:00Z")", R"("2026-11-17T12:00:00.5+01:00")"},
          {R"("2026-11-17")", R"("2026-11-17T25:00:00Z")"}},
         {R"({"type": "string", "format": "ipv6"})",
          {R"("::1")", R"("1:2:3:4:5:6:7:8")"},
          {R"("1::2::3")", R"(":")"}},
         {R"({"type": "string", "format": "uuid"})",
          {R"("123e4567-e89b-12d3-a456-426614174000")"},
          {R"("123")"}},
         {R"({"type": "string", "format": "uri"})",
          {R"("https://a.b/c?d=e#f")"},
          {R"("a b")", R"("/path")"}},
         {R"({"type": "string", "format": "email"})", {R"("a.b@c.de")"}, {R"("a@")", R"("a")"}},
         {R"({"type": "string", "format": "duration"})",
          {R"("P1Y2M")", R"("PT5S")"},
          {R"("P")", R"("1Y")"}},
         {R"({"type": "string", "format": "made-up"})", {R"("anything")"}, {"1"}}});
}

TEST(Schema, Numbers) {
  check(
      {{R"({"type": "integer", "minimum": -3, "maximum": 12})",
        {"-3", "0", "12", "9"},
        {"-4", "13", "120"}},
       {R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5})",
        {"0.1", "1.5", "1"},
        {"0", "1.51", "2", "-1"}},
       {R"({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1, "exclusiveMinimum": true})",
        {"1.1"},
        {"1", "1.0"}},
       {R"({"multipleOf": 0.01})", {"1.25", "3", "\"text\""}, {"1.255"}},
       {R"({"type": "integer", "multipleOf": 5, "minimum": 7})", {"10", "15"}, {"5", "12"}},
       {R"({"const": 2})", {"2", "2.0"}, {"2.5", "3"}}});
}

TEST(Schema, PropertiesComeInTheSchemasOrder) {
  check(
      {{R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["b"]})",
        {R"({"a":1,"b":2})", R"({"b":2})", R"({"b":2,"c":null})", "{ \"b\" : 2 }"},
        {R"({"a":1})", R"({"b":2,"a":1})", R"({"b":"x"})", R"({"b":2,"b":3})",
         "{          \"b\":2}", R"({"b":2,})"}},
       {R"({"properties": {"a": {}}, "additionalProperties": false})",
        {R"({"a":1})", "{}"},
        {R"({"b":1})"}},
       {R"({"required": ["x"], "additionalProperties": {"type": "null"}})",
        {R"({"x":null})"},
        {R"({"x":1})", "{}"}},
       {R"({"type": "object", "patternProperties": {"^s_": {"type": "string"}, "n$": {"type": "integer"}}, "additionalProperties": false})",
        {R"({"s_a":"x","bn":1})"},
        {R"({"s_a":1})", R"({"x":1})", R"({"s_n":1})"}},
       {R"({"type": "object", "propertyNames": {"maxLength": 2}})",
        {R"({"ab":1})"},
        {R"({"abc":1})"}},
       {R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
        {R"({"a":1})", R"({"a":1,"b":2})"},
        {"{}", R"({"a":1,"b":2,"c":3})"}},
       {R"({"dependentRequired": {"a": ["b"]}})",
        {R"({"a":1,"b":1})", R"({"b":1})", "{}"},
        {R"({"a":1})"}},
       {R"({"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}})",
        {R"({"a":1,"b":1})", R"({"b":"x"})"},
        {R"({"a":1,"b":"x"})"}}});
}

TEST(Schema, Arrays) {
  check(
      {{R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2})",
        {"[1]", "[1, 2]"},
        {"[]", "[1,2,3]", "[\"a\"]", "[1,]"}},
       {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
        {"[]", "[1]", "[1,\"a\"]"},
        {"[\"a\"]", "[1,\"a\",2]"}},
       {R"({"type": "array", "contains": {"const": 5}})", {"[5]", "[1,5,2]"}, {"[]", "[1]"}},
       {R"({"type": "array", "contains": {"const": 5}, "maxContains": 1})",
        {"[5]", "[1,5]"},
        {"[5,5]", "[1]"}},
       {R"({"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"type": "string"}}]})",
        {"[1,\"a\"]", "[\"a\",2,1]"},
        {"[1]", "[\"a\"]"}},
       {R"({"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": true})",
        {"[]", "[\"b\",1,\"a\"]"},
        {"[\"a\",\"a\"]", "[1,1.0]"}},
       {R"({"not": {"items": {"type": "integer"}}})",
        {"[\"a\"]", "[1,\"a\"]"},
        {"[]", "[1]", "7"}}});
}

TEST(Schema, Combinations) {
  check(
      {{R"({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"minimum": 3}}, "required": ["a"]}]})",
        {R"({"a":3})"},
        {R"({"a":2})", "{}", R"({"a":"x"})"}},
       {R"({"anyOf": [{"type": "integer"}, {"minLength": 2}]})",
        {"1", "\"ab\"", "null"},
        {"\"a\""}},
       {R"({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]})",
        {"1", "2.5"},
        {"3", "1.5"}},
       {R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
        {R"({"a":1})", R"({"b":1})"},
        {R"({"a":1,"b":1})", "{}", "1"}},
       {R"({"oneOf": [{"properties": {"a": {}}, "required": ["a"], "additionalProperties": false},
                        {"properties": {"a": {}, "b": {}}, "required": ["a"], "additionalProperties": false}]})",
        {R"({"a":1,"b":1})"},
        {R"({"a":1})", R"({"c":1})"}},
       {R"({"not": {"required": ["a"]}})", {"{}", R"({"b":1})"}, {R"({"a":1})", "1"}},
       {R"({"type": "object", "not": {"additionalProperties": {"type": "integer"}}})",
        {R"({"a":"x"})", R"({"a":1,"b":"x"})"},
        {"{}", R"({"a":1})"}},
       {R"({"not": {"const": {"a": [1]}}})",
        {"{}", R"({"a":[2]})", R"({"a":[1],"b":1})", "1"},
        {R"({"a":[1]})"}},
       {R"({"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["x"]}, "else": {"required": ["y"]}})",
        {R"({"k":1,"x":0})", R"({"y":0})"},
        {R"({"k":1,"y":0})", "{}"}}});
}

TEST(Schema, References) {
  check(
      {{R"({"$defs": {"t": {"type": "object", "properties": {"c": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
              "additionalProperties": false}}, "$ref": "#/$defs/t"})",
        {R"({"c":[{"c":[]},{}]})"},
        {R"({"c":[1]})", R"({"d":1})"}},
       {R"({"$id": "http://x/root", "$defs": {"a": {"$id": "a", "$anchor": "here", "type": "integer"}}, "$ref": "a#here"})",
        {"1"},
        {"\"x\""}},
       {R"({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"i": {"type": "integer"}},
              "properties": {"a": {"$ref": "#/definitions/i", "minimum": 5}}})",
        {R"({"a":1})"},
        {R"({"a":"x"})"}}});
}

// A schema of which a part allows no value must not lead into that part.
TEST(Schema, ImpossiblePartsAreNotOffered) {
  check(
      {{R"({"type": "object", "properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}})",
        {"{}", R"({"b":1})"},
        {R"({"a":1})"}}});
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/endless"}}, "additionalProperties": false,
          "$defs": {"endless": {"type": "object", "properties": {"n": {"$ref": "#/$defs/endless"}}, "required": ["n"]}}})"));
  ASSERT_NE(grammar, nullptr);
  Matcher matcher(grammar, testing::small_trie());
  EXPECT_TRUE(matcher.accept_bytes("{"));
  EXPECT_FALSE(matcher.accept_bytes("\""));
}

TEST(Schema, RefusesWithKeywordAndPath) {
  for (
      const auto& [schema, expected] : std::vector<std::pair<const char*, const char*>>{
          {R"({"properties": {"t": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}})",
           "uniqueItems at #/properties/t: "},
          {R"({"properties": {"a/b": {"$ref": "http://elsewhere/x"}}})",
           "$ref at #/properties/a~1b: "},
          {R"({"items": {"$ref": "#/$defs/none"}})", "$ref at #/items: "},
          {R"({"type": "strnig"})", "type at #: "},
          {R"({"anyOf": [{"pattern": "(a)\\1"}]})", "pattern at #/anyOf/0: "},
          {R"({"$ref": "#"})", "$ref at #: "},
          {R"({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"$dynamicRef": "#y"}}})",
           "$dynamicRef at #/$defs/x: "},
          {R"({"allOf": [{"type": "string"}, {"type": "integer"}]})",
           "the schema at # allows no value"},
          {R"({"minimum": "1"})", "minimum at #: "},
          {R"({"allOf": [{"unevaluatedProperties": false, "$ref": "#/$defs/x"}], "$defs": {"x": {}}})",
           "unevaluatedProperties at #/allOf/0: "},
          {R"([])", "the schema at #"},
          {R"({"a": )", "the schema is not"}}) {
    EXPECT_EQ(refusal(Grammar::compile_json_schema(schema)).substr(0, std::string(expected).size()),
              expected)
        << schema;
  }
}

TEST(Schema, AnyOrderIfAskedFor) {
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["b"],
          "maxProperties": 3})",
      {.any_order = true}));
  EXPECT_TRUE(accepts(grammar, R"({"b":2,"a":1})"));
  EXPECT_TRUE(accepts(grammar, R"({"c":0,"b":2})"));
  EXPECT_FALSE(accepts(grammar, R"({"c":0,"a":2})"));
  EXPECT_FALSE(accepts(grammar, R"({"b":2,"b":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"c":0,"d":0,"e":0,"b":1})"));
}

// Alternatives that only the keywords next to oneOf distinguish.
TEST(Schema, OneOfInItsContext) {
  std::string alternatives;
  for (int i = 0; i < 12; ++i)
    alternatives += (i == 0 ? "" : ",") + std::string(R"({"properties": {"kind": {"const": "k)") +
                    std::to_string(i) +
                    R"("}, "a": {"type": "integer"}, "b": {"type": "string"}}})";
  const auto grammar = compiled(Grammar::compile_json_schema(
      R"({"type": "object", "required": ["kind"], "oneOf": [)" + alternatives + "]}"));
  EXPECT_TRUE(accepts(grammar, R"({"kind":"k7","a":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"kind":"k7","a":""})"));
  EXPECT_FALSE(accepts(grammar, R"({"a":1})"));
}

// One name may be what two negations ask for.
TEST(Schema, OneNameMeetsTwoDemands) {
  check({{R"({"type": "object", "maxProperties": 1, "allOf": [
              {"not": {"propertyNames": {"not": {"pattern": "a1"}}}},
              {"not": {"propertyNames": {"not": {"pattern": "b2"}}}}]})",
          {R"({"a1b2":0})", R"({"b2a1":0})"},
          {R"({"a1":0})", "{}", R"({"a1":0,"b2":0})"}}});
}

TEST(Schema, CompactAllowsNoWhiteSpace) {
  const auto grammar =
      compiled(Grammar::compile_json_schema(R"({"type": "array"})", {.max_whitespace = 0}));
  EXPECT_TRUE(accepts(grammar, "[1,2]"));
  EXPECT_FALSE(accepts(grammar, "[1, 2]"));
}

}  // namespace
}  // namespace hearth::grammar
