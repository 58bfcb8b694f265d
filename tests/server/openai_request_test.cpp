// Bodies of requests: every field is read, every wrong one refused by name, and nothing crashes.
#include "tools/server/openai_request.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

const ApiContext kContext{.vocabulary = 1000};

ApiRequest accepted(ApiKind kind, const std::string& body) {
  auto parsed = parse_api_request(kind, body, kContext);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<ApiRequest>(std::move(parsed));
}

// A chat request with more fields.
std::string chat(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"Hi"}])" + (fields.empty() ? "" : "," + fields) +
         "}";
}
std::string completion_with(const std::string& fields) {
  return R"({"prompt":"Hi")" + (fields.empty() ? "" : "," + fields) + "}";
}

TEST(OpenAiRequest, ReadsMessages) {
  const ApiRequest request = accepted(ApiKind::kChat, R"({"messages":[
      {"role":"developer","content":"Be brief."},
      {"role":"user","name":"x","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":null},
      {"role":"user","content":"\u00e9\ud83d\ude00"}]})");
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.messages[0].content, "Be brief.");
  EXPECT_EQ(request.messages[1].content, "ab");
  EXPECT_EQ(request.messages[2].content, "");
  EXPECT_EQ(request.messages[3].content, "é😀");
}

TEST(OpenAiRequest, ReadsPrompts) {
  using Ids = std::vector<uint32_t>;
  const std::pair<const char*, std::vector<ApiRequest::Prompt>> cases[] = {
      {R"({"prompt":"Hi"})", {"Hi"}},
      {R"({"prompt":["Hi"]})", {"Hi"}},
      {R"({"prompt":["Hi","","you"]})", {"Hi", "", "you"}},
      {R"({"prompt":[1,999]})", {Ids{1, 999}}},
      {R"({"prompt":[[1,999]]})", {Ids{1, 999}}},
      {R"({"prompt":[[1],[2,3]]})", {Ids{1}, Ids{2, 3}}},
  };
  for (const auto& [body, prompts] : cases)
    EXPECT_EQ(accepted(ApiKind::kCompletion, body).prompts, prompts) << body;
}

TEST(OpenAiRequest, LimitsWhatOneRequestMayAskFor) {
  std::string prompts = "\"a\"";
  for (int i = 1; i < 512; ++i) prompts += ",\"a\"";
  EXPECT_EQ(accepted(ApiKind::kCompletion, "{\"n\":4,\"prompt\":[" + prompts + "]}").prompts.size(),
            512u);
  const auto refused =
      parse_api_request(ApiKind::kCompletion, "{\"n\":5,\"prompt\":[" + prompts + "]}", kContext);
  ASSERT_TRUE(std::holds_alternative<ApiError>(refused));
  EXPECT_EQ(std::get<ApiError>(refused).param, "prompt");
}

TEST(OpenAiRequest, ReadsEveryField) {
  const ApiRequest request = accepted(ApiKind::kChat, chat(R"(
      "model":"m","max_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":5,"min_p":0.1,
      "presence_penalty":-1,"frequency_penalty":1.5,"repetition_penalty":1.1,
      "logit_bias":{"5":-100,"6":2.5},"stop":["a","bc"],"n":3,"seed":-2,"stream":true,
      "stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":2,"user":"u",
      "priority":4,"ignore_eos":true)"));
  const SamplingOptions& sampling = request.generation.sampling;
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.generation.max_tokens, 7u);
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.top_k, 5u);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, -1);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 1.5f);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.1f);
  ASSERT_EQ(request.generation.biases.size(), 2u);
  EXPECT_EQ(request.generation.biases[0].token, 5u);
  EXPECT_FLOAT_EQ(request.generation.biases[1].bias, 2.5f);
  EXPECT_EQ(request.generation.stop, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(request.n, 3u);
  EXPECT_TRUE(request.has_seed);
  EXPECT_EQ(sampling.seed, static_cast<uint64_t>(-2));
  EXPECT_TRUE(request.stream && request.include_usage && request.logprobs);
  EXPECT_EQ(sampling.top_logprobs, 2u);
  EXPECT_EQ(request.generation.priority, 4);
  EXPECT_TRUE(request.generation.ignore_end);
}

TEST(OpenAiRequest, ReadsAPrediction) {
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("prediction":{"type":"content","content":"So."})"))
                .prediction,
            "So.");
  EXPECT_EQ(accepted(ApiKind::kCompletion,
                     completion_with(
                         R"("prediction":{"type":"content","content":[{"type":"text","text":"a"},
                               {"type":"text","text":"b"}]})"))
                .prediction,
            "ab");
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("prediction":null)")).prediction, "");
  for (const char* wrong :
       {R"("a")", "{}", R"({"type":"content"})", R"({"type":"text","content":"a"})",
        R"({"type":"content","content":1})", R"({"type":"content","content":["a"]})",
        R"({"type":"content","content":"a","more":1})"}) {
    const auto parsed =
        parse_api_request(ApiKind::kChat, chat(R"("prediction":)" + std::string(wrong)), kContext);
    const ApiError* error = std::get_if<ApiError>(&parsed);
    ASSERT_NE(error, nullptr) << wrong;
    EXPECT_EQ(error->param, "prediction") << wrong;
  }
}

TEST(OpenAiRequest, ARequestStartsFromTheModelsSampling) {
  const ApiContext context{
      .vocabulary = 1000,
      .sampling = {.temperature = 0.6f, .top_k = 20, .top_p = 0.95f, .min_p = 0.1f}};
  const auto read = [&](const std::string& fields) {
    return std::get<ApiRequest>(parse_api_request(ApiKind::kChat, chat(fields), context))
        .generation.sampling;
  };
  const SamplingOptions plain = read("");
  EXPECT_FLOAT_EQ(plain.temperature, 0.6f);
  EXPECT_EQ(plain.top_k, 20u);
  EXPECT_FLOAT_EQ(plain.top_p, 0.95f);
  EXPECT_FLOAT_EQ(plain.min_p, 0.1f);
  const SamplingOptions own = read(R"("temperature":0,"top_k":-1,"min_p":0)");
  EXPECT_FLOAT_EQ(own.temperature, 0);
  EXPECT_EQ(own.top_k, 0u);
  EXPECT_FLOAT_EQ(own.top_p, 0.95f);
  EXPECT_FLOAT_EQ(own.min_p, 0);
}

TEST(OpenAiRequest, AMissingOrNullFieldKeepsItsDefault) {
  const ApiRequest plain = accepted(ApiKind::kChat, chat(""));
  const ApiRequest null = accepted(ApiKind::kChat, chat(R"(
      "max_tokens":null,"temperature":null,"stop":null,"n":null,"seed":null,"stream":null,
      "stream_options":null,"logprobs":null,"top_logprobs":null,"logit_bias":null,"user":null)"));
  for (const ApiRequest* request : {&plain, &null}) {
    EXPECT_EQ(request->n, 1u);
    EXPECT_FALSE(request->stream || request->has_seed || request->logprobs);
    EXPECT_EQ(request->generation.max_tokens, 0u);
    EXPECT_TRUE(request->generation.stop.empty());
    EXPECT_FLOAT_EQ(request->generation.sampling.temperature, 1);
  }
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("max_completion_tokens":9)")).generation.max_tokens,
            9u);
  EXPECT_FALSE(
      accepted(ApiKind::kChat, chat(R"("stream_options":{"include_usage":null})")).include_usage);
  // A limit beyond any context is no mistake.
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("max_tokens":4294967297)")).generation.max_tokens,
            2147483647u);
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("stop":"x")")).generation.stop.size(), 1u);
  const ApiRequest logprobs = accepted(ApiKind::kCompletion, completion_with(R"("logprobs":0)"));
  EXPECT_TRUE(logprobs.logprobs);
  EXPECT_EQ(logprobs.generation.sampling.top_logprobs, 0u);
}

TEST(OpenAiRequest, BothNamesOfTheLimitMustAgree) {
  EXPECT_EQ(accepted(ApiKind::kChat, chat(R"("max_tokens":9,"max_completion_tokens":9)"))
                .generation.max_tokens,
            9u);
  for (const char* one_limit : {R"("max_tokens":-1,"max_completion_tokens":5)",
                                R"("max_tokens":5,"max_completion_tokens":-1)"})
    EXPECT_EQ(accepted(ApiKind::kChat, chat(one_limit)).generation.max_tokens, 5u);
  const auto parsed = parse_api_request(
      ApiKind::kChat, chat(R"("max_tokens":9,"max_completion_tokens":5)"), kContext);
  const ApiError* error = std::get_if<ApiError>(&parsed);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->message, "'max_completion_tokens' contradicts 'max_tokens'");
}

TEST(OpenAiRequest, CompressionNeedsTexts) {
  const auto problem = [](const std::string& prompt) {
    const auto parsed = parse_api_request(
        ApiKind::kCompletion, R"({"compress":{"ratio":0.5},"prompt":)" + prompt + "}", kContext);
    const ApiError* error = std::get_if<ApiError>(&parsed);
    return error == nullptr ? std::string() : error->param + ": " + error->message;
  };
  EXPECT_EQ(problem(R"("a")"), "");
  EXPECT_EQ(problem(R"(["a","b"])"), "");
  for (const char* ids : {"[1,2]", "[[1,2],[3]]"})
    EXPECT_EQ(problem(ids),
              "compress: 'compress' cannot shorten token ids; send the prompt as text");
}

TEST(OpenAiRequest, RefusesWrongFieldsByName) {
  struct Case {
    const char *param, *fields;
  };
  const Case cases[] = {
      {"model", R"("model":1)"},
      {"max_tokens", R"("max_tokens":"7")"},
      {"max_tokens", R"("max_tokens":0)"},
      {"max_tokens", R"("max_tokens":-2)"},
      {"max_tokens", R"("max_tokens":1.5)"},
      {"max_tokens", R"("max_tokens":18446744073709551615)"},
      {"max_completion_tokens", R"("max_completion_tokens":[])"},
      {"temperature", R"("temperature":"hot")"},
      {"temperature", R"("temperature":-0.1)"},
      {"temperature", R"("temperature":1e300)"},
      {"top_p", R"("top_p":1.1)"},
      {"top_k", R"("top_k":-2)"},
      {"top_k", R"("top_k":1.5)"},
      {"min_p", R"("min_p":true)"},
      {"presence_penalty", R"("presence_penalty":2.1)"},
      {"frequency_penalty", R"("frequency_penalty":{})"},
      {"repetition_penalty", R"("repetition_penalty":0)"},
      {"logit_bias", R"("logit_bias":[1])"},
      {"logit_bias", R"("logit_bias":{"x":1})"},
      {"logit_bias", R"("logit_bias":{"1000":1})"},
      {"logit_bias", R"("logit_bias":{"-1":1})"},
      {"logit_bias", R"("logit_bias":{"1":101})"},
      {"logit_bias", R"("logit_bias":{"1":"a"})"},
      {"stop", R"("stop":1)"},
      {"stop", R"("stop":["a",1])"},
      {"stop", R"("stop":["","","","","","","","","","","","","","","","",""])"},
      {"n", R"("n":0)"},
      {"n", R"("n":65)"},
      {"n", R"("n":"1")"},
      {"seed", R"("seed":1.5)"},
      {"seed", R"("seed":"x")"},
      {"seed", R"("seed":18446744073709551615)"},
      {"stream", R"("stream":1)"},
      {"stream_options", R"("stream_options":true)"},
      {"stream_options.include_usage", R"("stream_options":{"include_usage":1})"},
      {"user", R"("user":{})"},
      {"priority", R"("priority":"high")"},
      {"priority", R"("priority":1001)"},
      {"ignore_eos", R"("ignore_eos":"no")"},
  };
  for (const Case& test : cases) {
    for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion}) {
      const auto parsed = parse_api_request(
          kind, kind == ApiKind::kChat ? chat(test.fields) : completion_with(test.fields),
          kContext);
      const ApiError* error = std::get_if<ApiError>(&parsed);
      ASSERT_NE(error, nullptr) << test.fields;
      EXPECT_EQ(error->status, 400);
      EXPECT_EQ(error->param, test.param) << test.fields;
      EXPECT_NE(error->message.find(test.param), std::string::npos) << error->message;
    }
  }
}

TEST(OpenAiRequest, RefusesWrongPromptsAndMessagesByName) {
  struct Case {
    ApiKind kind;
    const char *param, *body;
  };
  const Case cases[] = {
      {ApiKind::kChat, "messages", R"({})"},
      {ApiKind::kChat, "messages", R"({"messages":[]})"},
      {ApiKind::kChat, "messages", R"({"messages":"Hi"})"},
      {ApiKind::kChat, "messages[0]", R"({"messages":["Hi"]})"},
      {ApiKind::kChat, "messages[0].role", R"({"messages":[{"content":"Hi"}]})"},
      {ApiKind::kChat, "messages[0].role", R"({"messages":[{"role":1,"content":"Hi"}]})"},
      {ApiKind::kChat, "messages[1].content",
       R"({"messages":[{"role":"assistant"},{"role":"user","content":1}]})"},
      {ApiKind::kChat, "messages[0].content", R"({"messages":[{"role":"user"}]})"},
      {ApiKind::kChat, "messages[1].content",
       R"({"messages":[{"role":"assistant","content":null},{"role":"system","content":null}]})"},
      {ApiKind::kChat, "messages[0].content[0]",
       R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})"},
      {ApiKind::kChat, "messages[0].content",
       R"({"messages":[{"role":"user","content":[{"type":"text","text":1}]}]})"},
      {ApiKind::kChat, "messages[0].content[0]",
       R"({"messages":[{"role":"user","content":["text"]}]})"},
      {ApiKind::kChat, "messages[1].role",
       R"({"messages":[{"role":"user","content":"a"},{"role":"function","content":"b"}]})"},
      {ApiKind::kChat, "logprobs", R"({"messages":[{"role":"user","content":"a"}],"logprobs":1})"},
      {ApiKind::kChat, "top_logprobs",
       R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":2})"},
      {ApiKind::kChat, "top_logprobs",
       R"({"messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":1000})"},
      {ApiKind::kCompletion, "prompt", R"({})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":null})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":1})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[1000]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[-1]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[1.0]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":["a",1]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[1,"a"]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":["a",[1]]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[[1],"a"]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[[1],[]]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[[1],[1000]]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[null]})"},
      {ApiKind::kCompletion, "prompt", R"({"prompt":[[[1]]]})"},
      {ApiKind::kCompletion, "logprobs", R"({"prompt":"a","logprobs":true})"},
  };
  for (const Case& test : cases) {
    const auto parsed = parse_api_request(test.kind, test.body, kContext);
    const ApiError* error = std::get_if<ApiError>(&parsed);
    ASSERT_NE(error, nullptr) << test.body;
    EXPECT_EQ(error->param, test.param) << test.body;
  }
}

TEST(OpenAiRequest, RefusesBodiesThatAreNotObjects) {
  const std::string deep = R"({"prompt":)" + std::string(100000, '[');
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += R"({"a":)";
    return text;
  }();
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("1"),
        std::string("{\"prompt\":\"\xff\xfe\"}"), std::string("{\"prompt\":\"a\"}x"),
        std::string("{\"prompt\":\"\\ud800\"}"), std::string("{\"n\":1e999,\"prompt\":\"a\"}"),
        std::string("{\"prompt\":\"a\0b\"}", 14), deep, deep_objects}) {
    for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion}) {
      const auto parsed = parse_api_request(kind, body, kContext);
      ASSERT_TRUE(std::holds_alternative<ApiError>(parsed)) << body.substr(0, 100);
      EXPECT_EQ(std::get<ApiError>(parsed).status, 400);
    }
    EXPECT_TRUE(std::holds_alternative<ApiError>(parse_tokenize_request(body)));
    EXPECT_TRUE(std::holds_alternative<ApiError>(parse_detokenize_request(body, 1000)));
  }
  // Brackets in a string are not nested lists.
  accepted(ApiKind::kCompletion, R"({"prompt":"\")" + std::string(200, '[') + "\"}");
}

TEST(OpenAiRequest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string valid = chat(R"("n":2,"stop":["a"],"logit_bias":{"5":-1},"seed":3)");
  for (int round = 0; round < 20000; ++round) {
    std::string body = valid;
    for (uint32_t change = random() % 4 + 1; change > 0; --change) {
      const size_t place = random() % body.size();
      switch (random() % 3) {
        case 0:
          body[place] = static_cast<char>(random());
          break;
        case 1:
          body.erase(place, random() % 8 + 1);
          break;
        default:
          body.insert(place, valid, random() % valid.size(), random() % 20);
      }
      if (body.empty()) body.push_back('{');
    }
    const auto parsed = parse_api_request(ApiKind::kChat, body, kContext);
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
      EXPECT_FALSE(error->message.empty());
    } else {
      EXPECT_FALSE(std::get<ApiRequest>(parsed).messages.empty());
    }
  }
}

TEST(OpenAiRequest, TokenizeAndDetokenize) {
  const auto tokenize = parse_tokenize_request(R"({"content":"a","parse_special":true})");
  const TokenizeRequest& asked = std::get<TokenizeRequest>(tokenize);
  EXPECT_EQ(asked.content, "a");
  EXPECT_TRUE(asked.parse_special);
  EXPECT_FALSE(asked.add_special);
  const auto param = [](const auto& parsed) {
    const ApiError* error = std::get_if<ApiError>(&parsed);
    return error != nullptr ? error->param : "(no error)";
  };
  EXPECT_EQ(param(parse_tokenize_request(R"({})")), "content");
  EXPECT_EQ(param(parse_tokenize_request(R"({"content":1})")), "content");
  EXPECT_EQ(param(parse_tokenize_request(R"({"content":"a","with_pieces":true})")), "with_pieces");
  EXPECT_EQ(param(parse_tokenize_request(R"({"content":"a","add_special":1})")), "add_special");
  EXPECT_EQ(std::get<std::vector<uint32_t>>(parse_detokenize_request(R"({"tokens":[1,2]})", 3)),
            (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(param(parse_detokenize_request(R"({"tokens":[3]})", 3)), "tokens");
  EXPECT_EQ(param(parse_detokenize_request(R"({"tokens":"a"})", 3)), "tokens");
  EXPECT_EQ(param(parse_detokenize_request(R"({"tokens":[1],"text":"a"})", 3)), "text");
}

}  // namespace
}  // namespace hearth
