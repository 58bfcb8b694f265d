// Decoding strategies over HTTP among 32 plain streams: everyone gets the text they would get
// alone.
#include <chrono>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/serving.h"

namespace hearth::testing {
namespace {

using nlohmann::json;

constexpr const char* kBuiltInModel = "";
constexpr double kDecodingPatience = 600;  // a crowd takes a CPU minutes

json decoding_request(json fields) {
  json body = {{"prompt", "Lily had a red ball. Tom had a red ball. Lily had a red"},
               {"max_tokens", 24},
               {"ignore_eos", true},
               {"temperature", 0}};
  body.update(fields);
  return body;
}

// Plain streams, long enough to be still there when the strategies are done.
struct Crowd {
  int streams = 0, tokens = 0;
  json more = json::object();  // fields

  json request(int seed) const {
    json body = {{"prompt", "Once upon a time"}, {"max_tokens", tokens}, {"ignore_eos", true},
                 {"temperature", 0.9},           {"seed", seed + 100},   {"stream", seed % 2 == 0}};
    body.update(more);
    return body;
  }
};

HttpAnswer answer_to(int port, const json& body) {
  HttpClient client(port);
  client.send(HttpClient::post_text("/v1/completions", body.dump()));
  return client.read(kDecodingPatience);
}

std::future<HttpAnswer> ask(int port, const json& body) {
  return std::async(std::launch::async, [=] { return answer_to(port, body); });
}

// Of all choices; the status and the body of an error.
std::string texts_in(const HttpAnswer& answer) {
  if (answer.status != 200) return std::to_string(answer.status) + " " + answer.body;
  const json reply = answer.json();
  std::string texts;
  for (const json& choice : reply["choices"])
    texts += choice["text"].get<std::string>() + "\n---\n";
  return texts;
}

// What a stream says, without the times and ids of its chunks.
std::string streamed_text(const HttpAnswer& answer) {
  std::istringstream lines(answer.body);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const json chunk = json::parse(line.substr(6), nullptr, false);
    for (const json& choice : chunk["choices"]) text += choice["text"].get<std::string>();
  }
  return text;
}

// Whether the server gets to run this many requests. Kernels may have to be compiled first.
bool comes_to_run(const Serving& server, int requests) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (std::chrono::steady_clock::now() < end) {
    if (server.metric("hearth_requests_running") == static_cast<uint64_t>(requests)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Runs the requests alone, one after the other, and then together in the crowd.
void expect_same_texts(const Serving& server, const std::vector<json>& requests,
                       const Crowd& crowd) {
  const std::string first_plain = streamed_text(answer_to(server.port(), crowd.request(0)));
  ASSERT_GT(first_plain.size(), static_cast<size_t>(crowd.tokens));
  std::vector<std::string> alone;
  for (const json& body : requests) alone.push_back(texts_in(answer_to(server.port(), body)));

  std::vector<std::future<HttpAnswer>> plain, together;
  for (int i = 0; i < crowd.streams; ++i) plain.push_back(ask(server.port(), crowd.request(i)));
  ASSERT_TRUE(comes_to_run(server, crowd.streams)) << server.log();
  for (const json& body : requests) together.push_back(ask(server.port(), body));
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(texts_in(together[i].get()), alone[i]) << requests[i].dump();
  EXPECT_TRUE(comes_to_run(server, crowd.streams)) << "the crowd was there all the time";
  EXPECT_EQ(streamed_text(plain.front().get()), first_plain);
  for (size_t i = 1; i < plain.size(); ++i) EXPECT_EQ(plain[i].get().status, 200);
  EXPECT_TRUE(comes_to_run(server, 0));
}

TEST(DecodingServer, StrategiesAmongPlainStreamsGiveTheTextsThatTheyGiveAlone) {
  Serving server({"--deterministic", "--speculate", "ngram", "--max-seqs", "64"});
  ASSERT_NE(server.port(), 0) << server.log();
  const std::vector<json> requests = {
      decoding_request({{"beams", 4}, {"n", 2}}),
      decoding_request({{"beams", 3}, {"length_penalty", 2.0}}),
      decoding_request({{"penalty_alpha", 0.6}, {"top_k", 4}}),
      decoding_request({{"guidance_scale", 2.0}, {"negative_prompt", "A sad story."}}),
      decoding_request({{"banned_strings", {" ball", " red"}}}),
      decoding_request({{"temperature", 0.8},
                        {"seed", 7},
                        {"typical_p", 0.9},
                        {"top_n_sigma", 2.0},
                        {"xtc_probability", 0.5},
                        {"dry_multiplier", 0.8}}),
      decoding_request({{"temperature", 0.8}, {"seed", 7}, {"mirostat", 2}}),
      decoding_request({{"compress", {{"ratio", 0.5}, {"min_tokens", 4}}}})};
  for (const json& body : requests) {
    const HttpAnswer answer = answer_to(server.port(), body);
    ASSERT_EQ(answer.status, 200) << body.dump() << answer.body;
  }
  const uint64_t accepted_before = server.metric("hearth_accepted_tokens_total");
  expect_same_texts(server, requests, {.streams = 32, .tokens = 900});
  EXPECT_GT(server.metric("hearth_accepted_tokens_total"), accepted_before + 32)
      << "guesses for the crowd were verified meanwhile";

  // A text that the client expects helps, and does not change what is written.
  const json greedy = decoding_request(json::object());
  const json expected = answer_to(server.port(), greedy).json();
  json with_prediction = greedy;
  with_prediction["prediction"] = {{"type", "content"},
                                   {"content", expected["choices"][0]["text"]}};
  const json predicted = answer_to(server.port(), with_prediction).json();
  EXPECT_EQ(predicted["choices"][0]["text"], expected["choices"][0]["text"]);
  EXPECT_GT(predicted["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 8)
      << predicted.dump();
}

TEST(DecodingServer, ContrastiveDecodingAmongPlainStreamsIsThatOfARequestAlone) {
  Serving server({"--deterministic", "--amateur", Serving::kSmallestModel, "--max-seqs", "64"},
                 kBuiltInModel);
  ASSERT_NE(server.port(), 0) << server.log();
  const json subtracted = decoding_request({{"cd_alpha", 0.1}, {"cd_beta", 0.5}});
  const json off = decoding_request({{"cd_beta", 0.0}});
  EXPECT_NE(texts_in(answer_to(server.port(), subtracted)),
            texts_in(answer_to(server.port(), off)));
  expect_same_texts(server, {subtracted, off},
                    {.streams = 32, .tokens = 100, .more = {{"cd_beta", 0}}});
}

// The built-in draft model drafts for the crowd, too.
TEST(DecodingServer, DraftsAmongPlainStreamsChangeNoText) {
  const std::vector<json> requests = {
      decoding_request(json::object()),
      decoding_request({{"temperature", 0.8}, {"seed", 7}, {"n", 2}}),
      decoding_request(
          {{"temperature", 0.8}, {"seed", 7}, {"frequency_penalty", 0.5}, {"typical_p", 0.9}})};
  std::vector<std::string> without_drafts;
  {
    Serving server({"--deterministic", "--max-seqs", "64"}, kBuiltInModel);
    ASSERT_NE(server.port(), 0) << server.log();
    for (const json& body : requests)
      without_drafts.push_back(texts_in(answer_to(server.port(), body)));
  }
  Serving server({"--deterministic", "--speculate", "draft", "--max-seqs", "64"}, kBuiltInModel);
  ASSERT_NE(server.port(), 0) << server.log();
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(texts_in(answer_to(server.port(), requests[i])), without_drafts[i])
        << requests[i].dump();
  const uint64_t accepted_before = server.metric("hearth_accepted_tokens_total");
  const Crowd crowd{.streams = 32, .tokens = 220};
  expect_same_texts(server, requests, crowd);
  // The requests, twice, and the one stream that runs alone have fewer tokens than four streams of
  // the crowd.
  EXPECT_GT(server.metric("hearth_accepted_tokens_total"), accepted_before + 4 * crowd.tokens)
      << "guesses for the crowd were accepted";
}

}  // namespace
}  // namespace hearth::testing
