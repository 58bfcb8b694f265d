// Embeddings, for clients of OpenAI and of Ollama: requests alone, then over HTTP.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/adapted_apis.h"
#include "tools/server/api/embeddings_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;

TEST(EmbeddingsRequest, IsReadOrRefusedByName) {
  const auto parse = [](const std::string& body) {
    return parse_embeddings_request(body, /*vocabulary=*/100, /*width=*/8);
  };
  const auto count = [&](const std::string& input) {
    return std::get<EmbeddingsRequest>(parse(R"({"input":)" + input + "}")).inputs.size();
  };
  EXPECT_EQ(count(R"("a fox")"), 1u);
  EXPECT_EQ(count(R"(["a","b"])"), 2u);
  EXPECT_EQ(count("[1,2,3]"), 1u);
  EXPECT_EQ(count("[[1,2],[3]]"), 2u);
  const auto all = std::get<EmbeddingsRequest>(parse(
      R"({"input":"x","dimensions":4,"encoding_format":"base64","pooling":"last","user":"u"})"));
  EXPECT_EQ(all.dimensions, 4u);
  EXPECT_TRUE(all.base64);
  EXPECT_EQ(all.pooling, Pooling::kLast);
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "input"},
      {R"({"input":""})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":["a",""]})", "input"},
      {R"({"input":[100]})", "input"},
      {R"({"input":[[]]})", "input"},
      {R"({"input":{"a":1}})", "input"},
      {R"({"input":"x","dimensions":9})", "dimensions"},
      {R"({"input":"x","dimensions":0})", "dimensions"},
      {R"({"input":"x","dimensions":18446744073709551615})", "dimensions"},
      {R"({"input":"x","encoding_format":"int8"})", "encoding_format"},
      {R"({"input":"x","pooling":"cls"})", "pooling"},
      {R"({"input":"x","priority":2000})", "priority"},
      {R"({"input":"x","stream":true})", "stream"},
  };
  for (const auto& [body, field] : cases) {
    const auto parsed = parse(body);
    ASSERT_TRUE(std::holds_alternative<ApiError>(parsed)) << body;
    EXPECT_EQ(std::get<ApiError>(parsed).param, field) << body;
  }
}

TEST(OllamaEmbedding, IsReadOrRefusedByName) {
  const auto refused = [](OllamaEmbedding call, const std::string& body) -> std::string {
    const auto parsed = parse_ollama_embedding(call, body, /*width=*/8);
    const ApiError* const error = std::get_if<ApiError>(&parsed);
    return error == nullptr ? "" : error->param;
  };
  const auto embed = [&](const std::string& body) {
    return refused(OllamaEmbedding::kEmbed, body);
  };
  EXPECT_EQ(embed(R"({"model":"m","input":"a fox","keep_alive":"5m","options":{"num_ctx":9}})"),
            "");
  EXPECT_EQ(embed(R"({"input":["a","b"],"truncate":false,"dimensions":4})"), "");
  EXPECT_EQ(embed("{}"), "input");
  EXPECT_EQ(embed(R"({"input":[]})"), "input");
  EXPECT_EQ(embed(R"({"input":["a",""]})"), "input");
  EXPECT_EQ(embed(R"({"input":[7]})"), "input");
  EXPECT_EQ(embed(R"({"input":"a","truncate":1})"), "truncate");
  EXPECT_EQ(embed(R"({"input":"a","dimensions":9})"), "dimensions");
  EXPECT_EQ(embed(R"({"input":"a","prompt":"b"})"), "prompt");
  EXPECT_EQ(refused(OllamaEmbedding::kEmbeddings, R"({"prompt":"a"})"), "");
  EXPECT_EQ(refused(OllamaEmbedding::kEmbeddings, R"({"prompt":["a"]})"), "prompt");
  EXPECT_EQ(refused(OllamaEmbedding::kEmbeddings, R"({"input":"a"})"), "input");
}

TEST(EmbeddingVector, IsShortenedAndEncoded) {
  const std::vector<float> vector = {3, 4, 12};
  EXPECT_EQ(shortened(vector, 2), (std::vector<float>{0.6f, 0.8f}));
  EXPECT_EQ(shortened(std::vector<float>{0, 0}, 0), (std::vector<float>{0, 0}));
  EXPECT_EQ(to_base64(std::vector<float>{1.0f}), "AACAPw==");
  EXPECT_EQ(to_base64(std::vector<float>{1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(to_base64(std::vector<float>{1.0f, -2.0f, 0.5f}), "AACAPwAAAMAAAAA/");
}

class ServedEmbeddings : public ServedApis {};

TEST_F(ServedEmbeddings, OfTextsAndIds) {
  std::string ids;
  for (int i = 0; i < 200; ++i) ids += (i == 0 ? "" : ",") + std::to_string(i);  // four steps
  const json reply =
      post("/v1/embeddings", R"({"input":[[7],[)" + ids + R"(]],"model":"any"})").json();
  ASSERT_EQ(reply["data"].size(), 2u) << reply;
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 201);
  double square = 0;
  for (uint32_t column = 0; column < kStandInWidth; ++column)
    square += std::pow(stand_in_hidden(7, column), 2);
  for (uint32_t column = 0; column < kStandInWidth; ++column)
    EXPECT_NEAR(reply["data"][0]["embedding"][column].get<double>(),
                stand_in_hidden(7, column) / std::sqrt(square), 1e-6);
  EXPECT_EQ(reply["data"][1]["index"], 1);
  const json last =
      post("/v1/embeddings", R"({"input":[1,2,7],"pooling":"last","dimensions":3})").json();
  EXPECT_EQ(last["data"][0]["embedding"].size(), 3u);
  const json text =
      post("/v1/embeddings", R"({"input":"a fox","encoding_format":"base64"})").json();
  EXPECT_EQ(text["data"][0]["embedding"].get<std::string>().size(), 4 * kStandInWidth * 4 / 3);
  const HttpAnswer refused = post("/v1/embeddings", R"({"input":[)" + ids + "," + ids + "]}");
  EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded");
}

TEST_F(ServedEmbeddings, ForOllamasClients) {
  const json two = post("/api/embed", R"({"model":"m","input":["a fox","a dog"]})").json();
  ASSERT_EQ(two["embeddings"].size(), 2u) << two;
  const json same = post("/v1/embeddings", R"({"input":"a fox"})").json();
  EXPECT_EQ(two["embeddings"][0], same["data"][0]["embedding"]);
  EXPECT_EQ(two["model"], "hearth");
  EXPECT_GT(two["prompt_eval_count"], 1);
  EXPECT_GT(two["total_duration"], 0);
  const json old = post("/api/embeddings", R"({"prompt":"a fox"})").json();
  EXPECT_EQ(old["embedding"], same["data"][0]["embedding"]);
  // What is too long is cut, unless the client does not want that.
  std::string story;
  for (int i = 0; i < 400; ++i) story += "fox ";
  const json cut = post("/api/embed", R"({"input":")" + story + "\"}").json();
  EXPECT_EQ(cut["prompt_eval_count"], 255) << cut;
  const HttpAnswer refused = post("/api/embed", R"({"truncate":false,"input":")" + story + "\"}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.json()["error"].is_string()) << refused.body;
}

}  // namespace
}  // namespace hearth::testing
