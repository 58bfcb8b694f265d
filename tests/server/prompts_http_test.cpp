// Completions over HTTP of one prompt or a list of them, as texts or ids, whole or as streams, with
// and without log-probabilities.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

using nlohmann::json;

constexpr const char* kPromptsPath = "/v1/completions";

// Greedy and of fixed length, so that the same prompt always gets the same answer.
std::string prompts_body(const std::string& prompt, const std::string& more = {}) {
  return R"({"temperature":0,"ignore_eos":true,"max_tokens":6,"prompt":)" + prompt + more + "}";
}

class ServedPrompts : public ServedStandIn {
 protected:
  // The texts of a reply, by index. Every index must occur exactly once.
  static std::vector<std::string> texts(const json& choices) {
    std::vector<std::string> all(choices.size());
    std::vector<bool> seen(choices.size());
    for (const json& choice : choices) {
      const auto index = choice["index"].get<size_t>();
      if (index >= all.size() || seen[index]) {
        ADD_FAILURE() << choices;
        return {};
      }
      seen[index] = true;
      EXPECT_EQ(choice["finish_reason"], "length");
      all[index] = choice["text"];
    }
    return all;
  }
  // A stream, put together as the choices of a whole reply; `usage` is its last object's.
  static json assembled(const std::string& body, json& usage) {
    json choices = json::array();
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("data: {")) continue;
      const json chunk = json::parse(line.substr(6));
      if (chunk.contains("usage")) usage = chunk["usage"];
      for (const json& part : chunk["choices"]) {
        const auto index = part["index"].get<size_t>();
        while (choices.size() <= index)
          choices.push_back({{"index", choices.size()}, {"text", ""}, {"finish_reason", json()}});
        json& choice = choices[index];
        EXPECT_TRUE(choice["finish_reason"].is_null()) << "after its end: " << line;
        choice["text"] = choice["text"].get<std::string>() + part["text"].get<std::string>();
        choice["finish_reason"] = part["finish_reason"];
        if (part["logprobs"].is_null()) continue;
        for (const json& token : part["logprobs"]["tokens"]) choice["tokens"].push_back(token);
      }
    }
    return choices;
  }
};

TEST_F(ServedPrompts, EachOfAListIsAnsweredAsIfAlone) {
  const std::vector<std::string> prompts = {R"("Once upon a time")", R"("The fox")", R"("A bee")"};
  // Sampled, so that the completions of one prompt differ.
  const std::string drawn = R"(,"temperature":1,"seed":5,"n":2)";
  std::vector<std::string> expected;
  uint64_t prompt_tokens = 0;
  for (const std::string& prompt : prompts) {
    const json alone = post(kPromptsPath, prompts_body(prompt, drawn)).json();
    for (const std::string& text : texts(alone["choices"])) expected.push_back(text);
    prompt_tokens += alone["usage"]["prompt_tokens"].get<uint64_t>();
  }
  ASSERT_EQ(expected.size(), 6u);
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_NE(expected[0], expected[2]);
  const std::string list = "[" + prompts[0] + "," + prompts[1] + "," + prompts[2] + "]";
  const json together = post(kPromptsPath, prompts_body(list, drawn)).json();
  EXPECT_EQ(texts(together["choices"]), expected);
  EXPECT_EQ(together["usage"]["prompt_tokens"], prompt_tokens);
  EXPECT_EQ(together["usage"]["completion_tokens"], 6 * 6);

  const HttpAnswer stream =
      post(kPromptsPath,
           prompts_body(list, drawn + R"(,"stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  json usage;
  EXPECT_EQ(texts(assembled(stream.body, usage)), expected);
  EXPECT_EQ(usage["prompt_tokens"], prompt_tokens);
  EXPECT_EQ(usage["completion_tokens"], 6 * 6);
}

TEST_F(ServedPrompts, MayBeListsOfIds) {
  const std::string first = "[1,20,30]", second = "[40,50]";
  const std::string a = texts(post(kPromptsPath, prompts_body(first)).json()["choices"]).at(0);
  const std::string b = texts(post(kPromptsPath, prompts_body(second)).json()["choices"]).at(0);
  EXPECT_NE(a, b);
  const json both = post(kPromptsPath, prompts_body("[" + first + "," + second + "]")).json();
  EXPECT_EQ(texts(both["choices"]), (std::vector<std::string>{a, b}));
  EXPECT_EQ(both["usage"]["prompt_tokens"], 5);
}

TEST_F(ServedPrompts, AllAreAcceptedOrNone) {
  std::string many = "\"a\"";
  for (int i = 0; i < 64; ++i) many += ",\"a\"";
  EXPECT_EQ(post(kPromptsPath, prompts_body("[" + many + "]")).status, 400) << "the queue takes 64";
  std::string too_long = "1";
  for (int i = 0; i < 300; ++i) too_long += ",1";
  const HttpAnswer refused = post(kPromptsPath, prompts_body("[[1],[" + too_long + "]]"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "prompt");
  EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ((*engine_)->metrics().requests_submitted.value(), 0u);
  EXPECT_EQ((*engine_)->metrics().requests_refused.value(), 65u + 2u);
}

// The tokens of a stop string and the one that ends the text are not among them.
TEST_F(ServedPrompts, LogprobsAreOfTheTextsTokens) {
  const auto reply = [&](const std::string& more) {
    return post(kPromptsPath, prompts_body("\"a\"", R"(,"logprobs":1)" + more))
        .json()["choices"][0];
  };
  const json whole = reply("");
  const json& tokens = whole["logprobs"]["tokens"];
  ASSERT_EQ(tokens.size(), 6u) << whole;
  const json stopped = reply(R"(,"stop":)" + tokens[3].dump());
  const json& kept = stopped["logprobs"]["tokens"];
  ASSERT_LE(kept.size(), 3u) << stopped;
  std::string text;
  for (const json& token : kept) text += token.get<std::string>();
  EXPECT_EQ(stopped["text"], text);
}

TEST_F(ServedPrompts, AStreamHasTheLogprobsOfTheWholeReply) {
  const auto ask = [&](const std::string& more) {
    return post(kPromptsPath, prompts_body("\"a\"", R"(,"logprobs":1)" + more));
  };
  const std::string end = ask("").json()["choices"][0]["logprobs"]["tokens"][3];
  // A stop string that comes, one that begins in the middle of a token, and one that never comes.
  for (const std::string& stop : {end, end.substr(end.size() / 2), std::string("never")}) {
    const std::string stopping = R"(,"stop":)" + json(stop).dump();
    const json whole = ask(stopping).json()["choices"][0];
    json usage;
    const json streamed = assembled(ask(stopping + R"(,"stream":true)").body, usage)[0];
    EXPECT_EQ(streamed["text"], whole["text"]) << stop;
    EXPECT_EQ(streamed.value("tokens", json::array()), whole["logprobs"]["tokens"]) << stop;
    EXPECT_EQ(streamed["finish_reason"], whole["finish_reason"]) << stop;
  }
}

class ServedScript : public ServedPrompts {
 protected:
  std::vector<TokenId> script() const override {
    return tokenizer_->encode("Once<|end|> upon<|end|> a time, there was a fox",
                              {.add_bos = false, .parse_special = true});
  }
};

// With ignore_eos, a token that would end the text neither ends it nor shows in it.
TEST_F(ServedScript, LogprobsCountWhatTheTextShows) {
  const auto ask = [&](const std::string& more) {
    return post(kPromptsPath, R"({"temperature":0,"ignore_eos":true,"max_tokens":9,"prompt":"a",
                                 "logprobs":0,"stop":"there")" +
                                  more + "}");
  };
  const json whole = ask("").json()["choices"][0];
  const std::string text = whole["text"];
  EXPECT_EQ(text, "Once upon a time, ");
  const json& tokens = whole["logprobs"]["tokens"];
  std::string shown;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(whole["logprobs"]["text_offset"][i], shown.size()) << tokens;
    if (tokens[i] != "<|end|>") shown += tokens[i].get<std::string>();
  }
  EXPECT_EQ(shown.substr(0, text.size()), text) << tokens;
  json usage;
  const json streamed = assembled(ask(R"(,"stream":true)").body, usage)[0];
  EXPECT_EQ(streamed["text"], text);
  EXPECT_EQ(streamed["tokens"], tokens);
}

TEST_F(ServedPrompts, ALimitBeyondTheContextIsTheContext) {
  const json reply =
      post(kPromptsPath, R"({"prompt":[1,2,3,4],"ignore_eos":true,"max_tokens":100000})").json();
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 252);
  EXPECT_EQ(reply["usage"]["total_tokens"], 256);
}

}  // namespace
}  // namespace hearth::testing
