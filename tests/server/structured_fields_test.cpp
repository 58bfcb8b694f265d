// What clients ask the text to be: which fields are read, which contradict each other, and the
// server with them, on the stand-in executor.
#include "tools/server/structured_fields.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = StructuredOutput::Kind;

StructuredOutput read(const std::string& fields) {
  const std::string body = "{" + fields + "}";
  const auto output = read_structured_fields(json::parse(body), body);
  if (const ApiError* error = std::get_if<ApiError>(&output)) {
    ADD_FAILURE() << fields << ": " << error->message;
    return {};
  }
  return std::get<StructuredOutput>(output);
}

ApiError error_of(const std::string& fields) {
  const std::string body = "{" + fields + "}";
  const auto output = read_structured_fields(json::parse(body), body);
  const ApiError* error = std::get_if<ApiError>(&output);
  return error != nullptr ? *error : ApiError{.status = 0};
}

TEST(StructuredFields, EveryWayToAskIsRead) {
  EXPECT_EQ(read("").kind, Kind::kNone);
  EXPECT_EQ(read(R"("response_format":{"type":"text"})").kind, Kind::kNone);
  EXPECT_EQ(read(R"("response_format":null,"grammar":"","json_schema":{})").kind, Kind::kNone);
  EXPECT_EQ(read(R"("response_format":{"type":"json_object"})").kind, Kind::kJsonObject);
  EXPECT_EQ(read(R"("structured_outputs":{"json_object":true})").kind, Kind::kJsonObject);
  EXPECT_EQ(read(R"("structured_outputs":{"regex":"a+"})").text, "a+");
  EXPECT_EQ(read(R"("structured_outputs":{"choice":["a","b"]})").choices.size(), 2u);
  EXPECT_EQ(read(R"("structured_outputs":{"grammar":"root ::= \"a\""})").kind, Kind::kGrammar);
  EXPECT_EQ(read(R"("grammar":"root ::= \"a\"")").text, "root ::= \"a\"");
  EXPECT_TRUE(read(R"("structured_outputs":{"json":null,"json_object":true,
                                            "disable_any_whitespace":true})")
                  .compact);
  EXPECT_EQ(read(R"("structured_outputs":{"json_object":false,"regex":null})").kind, Kind::kNone);
  EXPECT_TRUE(read(R"("structured_outputs":{"json":{}})").compact);
  EXPECT_FALSE(read(R"("structured_outputs":{"json":{},"disable_any_whitespace":false})").compact);
}

// They left the text free: an empty list of choices, and a schema that allows every value.
TEST(StructuredFields, EmptyConstraintsOfStructuredOutputsAreNotDropped) {
  EXPECT_EQ(error_of(R"("structured_outputs":{"choice":[]})").param, "structured_outputs.choice");
  for (const char* schema : {"{}", "true", "false", R"("")"}) {
    const StructuredOutput output =
        read(std::string(R"("structured_outputs":{"json":)") + schema + "}");
    EXPECT_EQ(output.kind, Kind::kJsonSchema) << schema;
    EXPECT_EQ(compile_structured(output).ok(), schema == std::string("{}") || *schema == 't');
  }
  EXPECT_EQ(read(R"("structured_outputs":{"grammar":""})").kind, Kind::kGrammar);
  const StructuredOutput nothing = read(R"("json_schema":false)");
  EXPECT_EQ(nothing.kind, Kind::kJsonSchema);
  EXPECT_FALSE(compile_structured(nothing).ok()) << "no text is allowed";
}

// The order of properties is part of what a schema says here; JSON libraries forget it.
TEST(StructuredFields, SchemasKeepTheOrderOfTheirPropertiesAndTheirNumbers) {
  const std::string schema = R"({"properties":{"z":{"multipleOf":0.10},"a":{}},"type":"object"})";
  for (
      const std::string& fields :
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":)" +
           schema + "}}",
       R"("response_format":{"type":"json_object","schema":)" + schema + "}",
       R"("structured_outputs":{"json":)" + schema + "}",
       R"("structured_outputs":{"json":)" + json(schema).dump() + "}",
       R"("json_schema":)" + schema}) {
    const StructuredOutput output = read(fields);
    EXPECT_EQ(output.kind, Kind::kJsonSchema) << fields;
    EXPECT_EQ(output.text, schema) << fields;
  }
}

TEST(StructuredFields, WrongFieldsAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("response_format":"json")", "response_format"},
      {R"("response_format":{})", "response_format.type"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_object","colour":1})", "response_format.colour"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a"}})",
       "response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}})",
       "response_format.json_schema.strict"},
      {R"("structured_outputs":[1])", "structured_outputs"},
      {R"("structured_outputs":{"json":5})", "structured_outputs.json"},
      {R"("structured_outputs":{"choice":"a"})", "structured_outputs.choice"},
      {R"("structured_outputs":{"choice":["a",1]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"structural_tag":"a"})", "structured_outputs.structural_tag"},
      {R"("grammar":["a"])", "grammar"},
      {R"("grammar":false)", "grammar"},
      {R"("json_schema":"a")", "json_schema"},
      // Contradictions.
      {R"("grammar":"root ::= \"a\"","json_schema":{"type":"object"})", "json_schema"},
      {R"("grammar":"root ::= \"a\"","response_format":{"type":"json_object"})", "grammar"},
      {R"("structured_outputs":{"regex":"a","choice":["a"]})", "structured_outputs.regex"},
  };
  for (const auto& [fields, param] : cases) {
    const ApiError error = error_of(fields);
    EXPECT_EQ(error.status, 400) << fields;
    EXPECT_EQ(error.param, param) << fields << ": " << error.message;
    EXPECT_THAT(error.message, HasSubstr(param));
  }
}

TEST(GrammarCache, EqualSchemasShareAGrammarAndOldOnesAreForgotten) {
  GrammarCache cache;
  const auto choice = [](int number) {
    return StructuredOutput{.kind = Kind::kChoice, .choices = {std::to_string(number)}};
  };
  const auto first = cache.compile(choice(0)).value();
  StructuredOutput elsewhere = choice(0);
  elsewhere.field = "other";
  EXPECT_EQ(cache.compile(elsewhere).value(), first);
  for (int i = 1; i <= 8; ++i) EXPECT_TRUE(cache.compile(choice(i)).ok());
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_FALSE(cache.compile({.kind = Kind::kRegex, .text = "("}).ok());
}

class StructuredServer : public testing::ServedStandIn {
 protected:
  std::string answer_to(const std::string& fields, const char* finish = "stop") const {
    const testing::HttpAnswer answer =
        post("/v1/chat/completions",
             R"({"messages":[{"role":"user","content":"a"}],"max_tokens":120,)" + fields + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    if (answer.status != 200) return {};
    const json choice = answer.json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], finish) << choice;
    return choice["message"]["content"];
  }
  json error_to(const std::string& fields) const {
    const testing::HttpAnswer answer =
        post("/v1/completions", R"({"prompt":"a","max_tokens":20,)" + fields + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.status == 400 ? answer.json()["error"] : json::object();
  }
};

TEST_F(StructuredServer, AnswersAsEachFieldAsks) {
  const json person = json::parse(answer_to(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":
         {"type":"object","properties":{"name":{"enum":["Ann","Bob"]},"age":{"type":"integer","maximum":99,
          "minimum":10}},"required":["name","age"],"additionalProperties":false}}})"));
  EXPECT_TRUE(person["name"] == "Ann" || person["name"] == "Bob");
  EXPECT_TRUE(person["age"] >= 10 && person["age"] <= 99);
  const std::string picked = answer_to(R"("structured_outputs":{"choice":["red","green"]})");
  EXPECT_TRUE(picked == "red" || picked == "green");
  EXPECT_EQ(answer_to(R"("structured_outputs":{"regex":"[0-9]{5}"})").size(), 5u);
  EXPECT_EQ(answer_to(R"("grammar":"root ::= \"x\" [ab]")").size(), 2u);
  EXPECT_TRUE(json::accept(answer_to(R"("json_schema":{"type":"array","items":{"enum":[1,2]},
                                                       "minItems":2,"maxItems":2})")));
}

// A model that loves white space cannot fill its answer with it.
TEST_F(StructuredServer, JsonObjectsHaveLittleWhiteSpace) {
  for (int seed = 0; seed < 5; ++seed) {
    const testing::HttpAnswer answer =
        post("/v1/completions", R"({"prompt":"a","max_tokens":80,"response_format":
             {"type":"json_object"},"logit_bias":{},"seed":)" +
                                    std::to_string(seed) + "}");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::string text = answer.json()["choices"][0]["text"];
    size_t blanks = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (in_string && text[i] == '\\') {
        ++i;
        continue;
      }
      if (text[i] == '"') in_string = !in_string;
      blanks = !in_string && (text[i] == ' ' || text[i] == '\n') ? blanks + 1 : 0;
      ASSERT_LE(blanks, 8u) << text;
    }
    ASSERT_NE(text.find('{'), std::string::npos) << text;
  }
}

TEST_F(StructuredServer, SchemasThatCannotBeEnforcedAreRefusedWithKeywordAndPath) {
  const json error = error_to(
      R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":
         {"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}}})");
  EXPECT_EQ(error["param"], "response_format.json_schema.schema");
  EXPECT_EQ(error["code"], "unsupported_schema");
  EXPECT_THAT(error["message"], HasSubstr("uniqueItems at #/properties/tags"));
  EXPECT_EQ(error_to(R"("structured_outputs":{"regex":"("})")["param"], "structured_outputs.regex");
  const json grammar = error_to(R"("grammar":"root ::= [")");
  EXPECT_EQ(grammar["code"], "invalid_grammar");
  EXPECT_THAT(grammar["message"], ::testing::StartsWith("'grammar': line 1: "));
  EXPECT_EQ(error_to(R"("structured_outputs":{"choice":null},"grammar":"x")")["param"], "grammar");
}

TEST_F(StructuredServer, HostileSchemasAreRefusedOrCompiledAndOthersAreServed) {
  std::string properties, deep = "{}", nested;
  for (int i = 0; i < 50'000; ++i)
    properties += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":{}";
  for (int i = 0; i < 10'000; ++i) deep = R"({"items":)" + deep + "}";
  for (int i = 0; i < 12; ++i) nested += "(";
  nested += "a";
  for (int i = 0; i < 12; ++i) nested += "{1,20})";
  for (const std::string& fields :
       {R"("json_schema":{"properties":{)" + properties + "}}",
        R"("structured_outputs":{"json":)" + json(deep).dump() + "}",
        R"("structured_outputs":{"regex":")" + nested + "\"}",
        std::string(R"("structured_outputs":{"regex":"(a|b)*a(a|b){300}c"})")}) {
    const testing::HttpAnswer answer =
        post("/v1/completions", R"({"prompt":"a","max_tokens":4,)" + fields + "}");
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.status;
  }
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","max_tokens":4})").status, 200);
}

TEST_F(StructuredServer, StreamsBringTheSameText) {
  const std::string fields =
      R"x("structured_outputs":{"regex":"(yes|no), (yes|no), (yes|no)"},"seed":3)x";
  const std::string whole = answer_to(fields);
  const testing::HttpAnswer stream =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"a"}],"max_tokens":120,"stream":true,)" +
               fields + "}");
  std::string text;
  for (size_t at = 0; (at = stream.body.find("data: {", at)) != std::string::npos; ++at) {
    const size_t begin = at + 6;
    const json event =
        json::parse(stream.body.substr(begin, stream.body.find('\n', begin) - begin));
    for (const json& choice : event["choices"])
      text += choice["delta"].value("content", std::string());
  }
  EXPECT_EQ(text, whole);
}

}  // namespace
}  // namespace hearth
