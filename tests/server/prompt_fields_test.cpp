// What requests may do with their prompts and texts: echo, suffix, compress, banned_strings. On a
// stand-in, whose log-probabilities are known.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/prompt_compression.h"
#include "engine/text/infill.h"
#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class PromptFieldsTest : public ServedStandIn {
 protected:
  HttpAnswer complete(json body) {
    body.emplace("temperature", 0);
    body.emplace("ignore_eos", true);
    body.emplace("max_tokens", 4);
    return post("/v1/completions", body.dump());
  }
  json choice(const json& body) {
    const HttpAnswer answer = complete(body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["choices"][0];
  }
  // What the stand-in reports for all ids but the first.
  static json logprobs_of(const std::vector<TokenId>& ids) {
    json logprobs = json::array({json()});
    uint64_t read = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      read = StandInSampler::mix(read, ids[i]);
      logprobs.push_back(stand_in_logprob(read, ids[i + 1]));
    }
    return logprobs;
  }
  static constexpr const char* kText = "Once upon a time there was a fox.";
};

TEST_F(PromptFieldsTest, EchoPutsThePromptFirst) {
  const std::string plain = choice({{"prompt", kText}})["text"];
  const json echoed = choice({{"prompt", kText}, {"echo", true}});
  EXPECT_EQ(echoed["text"], kText + plain);
  EXPECT_TRUE(echoed["logprobs"].is_null());
  EXPECT_EQ(choice({{"prompt", tokenizer_->encode(kText)}, {"echo", true}})["text"], kText + plain);
}

TEST_F(PromptFieldsTest, EchoWithLogprobsScoresThePrompt) {
  const std::vector<TokenId> ids = tokenizer_->encode(kText);
  // Twice: the second time the prompt is in the prefix cache.
  for (int round = 0; round < 2; ++round) {
    const json echoed = choice({{"prompt", kText}, {"echo", true}, {"logprobs", 0}});
    const json& logprobs = echoed["logprobs"];
    ASSERT_EQ(logprobs["tokens"].size(), ids.size() + 4);
    ASSERT_EQ(logprobs["text_offset"].size(), ids.size() + 4);
    const json expected = logprobs_of(ids);
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(logprobs["token_logprobs"][i], expected[i]);
    EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
    EXPECT_TRUE(logprobs["top_logprobs"][1].is_object());
    EXPECT_EQ(logprobs["text_offset"][0], 0);
    EXPECT_EQ(logprobs["text_offset"][ids.size()], std::string(kText).size());
  }
}

TEST_F(PromptFieldsTest, EchoNeedsNoNewToken) {
  const HttpAnswer answer =
      complete({{"prompt", kText}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json reply = answer.json();
  EXPECT_EQ(reply["choices"][0]["text"], kText);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["choices"][0]["logprobs"]["token_logprobs"],
            logprobs_of(tokenizer_->encode(kText)));
  EXPECT_EQ(reply["usage"]["completion_tokens"], 0);
  EXPECT_EQ(complete({{"prompt", kText}, {"max_tokens", 0}}).status, 400);
}

TEST_F(PromptFieldsTest, EchoComesFirstInAStream) {
  const json whole = choice({{"prompt", kText}, {"echo", true}, {"logprobs", 0}});
  for (const int tokens : {4, 0}) {
    const HttpAnswer answer = complete({{"prompt", kText},
                                        {"echo", true},
                                        {"logprobs", 0},
                                        {"stream", true},
                                        {"max_tokens", tokens}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    std::string text;
    json logprobs = json::array(), offsets = json::array();
    std::istringstream lines(answer.body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("data: {")) continue;
      const json part = json::parse(line.substr(6))["choices"][0];
      text += part["text"].get<std::string>();
      if (part["logprobs"].is_null()) continue;
      for (const json& one : part["logprobs"]["token_logprobs"]) logprobs.push_back(one);
      for (const json& one : part["logprobs"]["text_offset"]) offsets.push_back(one);
    }
    if (tokens == 0) {
      EXPECT_EQ(text, kText);
      EXPECT_EQ(logprobs, logprobs_of(tokenizer_->encode(kText)));
    } else {
      EXPECT_EQ(text, whole["text"].get<std::string>());
      EXPECT_EQ(logprobs, whole["logprobs"]["token_logprobs"]);
      EXPECT_EQ(offsets, whole["logprobs"]["text_offset"]);
    }
  }
}

TEST_F(PromptFieldsTest, SuffixNeedsInfillTokens) {
  const HttpAnswer answer = complete({{"prompt", "a"}, {"suffix", "b"}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "suffix");
  EXPECT_EQ(answer.json()["error"]["code"], "unsupported_parameter");
  EXPECT_EQ(complete({{"prompt", "a"}, {"suffix", ""}}).status, 200);
  EXPECT_EQ(complete({{"prompt", "a"}, {"suffix", 5}}).status, 400);
  EXPECT_EQ(complete({{"prompt", "a"}, {"suffix", "b"}, {"echo", true}}).status, 400);
}

TEST_F(PromptFieldsTest, ChatsHaveNeither) {
  for (const char* field : {"echo", "suffix"}) {
    json body = {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"max_tokens", 1}};
    body[field] = field == std::string("echo") ? json(true) : json("b");
    EXPECT_EQ(post("/v1/chat/completions", body.dump()).status, 400) << field;
    body[field] = false;
    EXPECT_EQ(post("/v1/chat/completions", body.dump()).status, 200) << field;
  }
}

TEST_F(PromptFieldsTest, BannedStringsDoNotAppear) {
  const json plain = choice({{"prompt", kText}, {"max_tokens", 20}});
  const std::string text = plain["text"];
  ASSERT_GT(text.size(), 12u);
  const std::string banned = text.substr(5, 3);
  const json other = choice(
      {{"prompt", kText}, {"max_tokens", 20}, {"banned_strings", {banned}}, {"logprobs", 0}});
  EXPECT_EQ(other["text"].get<std::string>().find(banned), std::string::npos);
  EXPECT_NE(other["text"], text);
  EXPECT_EQ(other["logprobs"]["tokens"].size(), 20u);
  for (const json& wrong : {json("x"), json::array({""}), json::array({1})})
    EXPECT_EQ(complete({{"prompt", kText}, {"banned_strings", wrong}}).status, 400) << wrong;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 12; ++i)
    text += "The fox ran to the river, and the bear was at home with a friend. ";
  return text;
}

TEST_F(PromptFieldsTest, CompressShortensThePrompt) {
  const std::string text = long_text() + "\n\nWhere was the bear?";
  const HttpAnswer answer =
      complete({{"prompt", text}, {"compress", {{"ratio", 0.5}}}, {"echo", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json reply = answer.json();
  const uint64_t before = tokenizer_->encode(text, {.add_bos = false}).size();
  EXPECT_EQ(reply["compression"]["tokens_before"], before);
  const auto after = reply["compression"]["tokens_after"].get<double>();
  EXPECT_LT(after, 0.6 * static_cast<double>(before));
  EXPECT_GT(after, 0.3 * static_cast<double>(before));
  EXPECT_LE(reply["usage"]["prompt_tokens"].get<double>(), after + 1);
  EXPECT_THAT(reply["choices"][0]["text"].get<std::string>(), HasSubstr("Where was the bear?"));
}

TEST_F(PromptFieldsTest, CompressLeavesShortPromptsAndQuestionsAlone) {
  json body = {{"prompt", kText}, {"compress", {{"ratio", 0.5}}}, {"echo", true}};
  EXPECT_THAT(choice(body)["text"].get<std::string>(), HasSubstr(kText));
  const json messages = {{{"role", "system"}, {"content", long_text()}},
                         {{"role", "user"}, {"content", "Who is it?"}}};
  const HttpAnswer answer =
      post("/v1/chat/completions",
           json{{"messages", messages}, {"max_tokens", 1}, {"compress", {{"ratio", 0.5}}}}.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["compression"]["tokens_before"],
            answer.json()["compression"]["tokens_after"]);
}

TEST_F(PromptFieldsTest, WrongCompressionIsRefused) {
  for (const json& wrong :
       {json(0.5), json::object(), json{{"ratio", nullptr}}, json{{"ratio", 0}}, json{{"ratio", 2}},
        json{{"ratio", "x"}}, json{{"ratio", 0.5}, {"unit", "letter"}},
        json{{"ratio", 0.5}, {"speed", 1}}, json{{"ratio", 0.5}, {"question_ratio", 0}},
        json{{"ratio", 0.5}, {"min_tokens", -1}}}) {
    const HttpAnswer answer = complete({{"prompt", kText}, {"compress", wrong}});
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_THAT(answer.json()["error"].dump(), HasSubstr("compress")) << wrong;
  }
}

TEST_F(PromptFieldsTest, TokenIdsCannotBeCompressed) {
  const std::vector<TokenId> ids = tokenizer_->encode(long_text());
  for (const json& prompt : {json(ids), json::array({ids, ids})}) {
    const HttpAnswer answer = complete({{"prompt", prompt}, {"compress", {{"ratio", 0.5}}}});
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], "compress");
  }
}

// The stand-in's scores do not depend on the steps, so windows show in what each token had before
// it: at least half a window, except at the beginning.
TEST_F(PromptFieldsTest, TextsLongerThanTheContextAreScoredInWindows) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += long_text();
  const std::vector<std::string> texts{text};
  const auto scored = score_texts(**engine_, *tokenizer_, texts);
  ASSERT_TRUE(scored.ok()) << scored.error().message;
  const std::vector<TokenId> ids = tokenizer_->encode(text, {.add_bos = false});
  ASSERT_GT(ids.size(), 512u);
  ASSERT_EQ((*scored)[0].tokens.size(), ids.size());
  EXPECT_EQ((*scored)[0].text, text);
  const size_t window = 256 - 2;
  const auto score = [&](size_t first, size_t token) {
    uint64_t read = 0;
    if (tokenizer_->vocabulary().add_bos)
      read = StandInSampler::mix(read, *tokenizer_->vocabulary().bos);
    for (size_t i = first; i < token; ++i) read = StandInSampler::mix(read, ids[i]);
    return -static_cast<double>(stand_in_logprob(read, ids[token]));
  };
  const auto& tokens = (*scored)[0].tokens;
  for (const size_t token : {size_t{1}, window - 1})
    EXPECT_EQ(tokens[token].surprisal, score(0, token));
  for (const size_t token : {window, window + window / 2 - 1})
    EXPECT_EQ(tokens[token].surprisal, score(window / 2, token));
}

TEST(Infill, TokensAreFoundByName) {
  Vocabulary vocabulary;
  for (const char* text : {"a", "<fim_prefix>", "<fim_middle>", "<fim_suffix>"})
    vocabulary.tokens.push_back({.text = text});
  const auto found = find_infill_tokens(vocabulary);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->prefix, 1u);
  EXPECT_EQ(found->suffix, 3u);
  EXPECT_EQ(found->middle, 2u);
  vocabulary.infill_prefix = 3;
  vocabulary.infill_suffix = 2;
  vocabulary.infill_middle = 1;
  EXPECT_EQ(find_infill_tokens(vocabulary)->prefix, 3u);
  vocabulary.infill_middle.reset();
  vocabulary.tokens.pop_back();
  EXPECT_FALSE(find_infill_tokens(vocabulary));
}

}  // namespace
}  // namespace hearth::testing
