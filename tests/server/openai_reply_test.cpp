// Replies in OpenAI's shapes, with the tiny model's vocabulary for the pieces.
#include "tools/server/openai_reply.h"

#include <memory>

#include <gtest/gtest.h>

#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"
#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"

namespace hearth {
namespace {

using nlohmann::json;

class OpenAiReply : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto vocabulary = read_vocabulary(**file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    auto made = Tokenizer::create(std::move(vocabulary).value());
    ASSERT_TRUE(made.ok()) << made.error().message;
    tokenizer_ = std::move(made).value();
  }
  static void TearDownTestSuite() { tokenizer_.reset(); }

  static GeneratedToken token(const std::string& text, float logprob) {
    const std::vector<uint32_t> ids = tokenizer_->encode(text, {.add_bos = false});
    EXPECT_EQ(ids.size(), 1u) << text;
    GeneratedToken token{.id = ids[0], .logprob = logprob, .top = {}, .text = text};
    token.top = {{.id = ids[0], .logprob = logprob}};
    return token;
  }

  static inline std::unique_ptr<Tokenizer> tokenizer_;
  const ReplyHead chat_{.kind = ApiKind::kChat, .id = "chatcmpl-1", .model = "m", .created = 5};
  const ReplyHead completion_{
      .kind = ApiKind::kCompletion, .id = "cmpl-1", .model = "m", .created = 5};
};

TEST_F(OpenAiReply, AWholeChatReply) {
  Choice stopped{.text = "Hello", .tokens = {token(" there", -0.5f)}, .end = {}};
  stopped.end.reason = FinishReason::kStop;
  stopped.end.prompt_tokens = 7;
  stopped.end.cached_tokens = 4;
  stopped.end.generated_tokens = 2;
  Choice cut = stopped;
  cut.end.reason = FinishReason::kLength;
  cut.end.generated_tokens = 3;
  const json reply = reply_json(chat_, std::vector{stopped, cut}, 2, true, *tokenizer_);
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["id"], "chatcmpl-1");
  EXPECT_EQ(reply["created"], 5);
  ASSERT_EQ(reply["choices"].size(), 2u);
  EXPECT_EQ(reply["choices"][1]["index"], 1);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(reply["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(reply["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "Hello");
  const json entry = reply["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(entry["token"], " there");
  EXPECT_FLOAT_EQ(entry["logprob"].get<float>(), -0.5f);
  EXPECT_EQ(entry["bytes"], (json{32, 116, 104, 101, 114, 101}));
  EXPECT_EQ(entry["top_logprobs"].size(), 1u);
  // One prompt, however many completions.
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 5);
  EXPECT_EQ(reply["usage"]["total_tokens"], 12);
  EXPECT_EQ(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
}

TEST_F(OpenAiReply, UsageCountsEveryPromptOnce) {
  std::vector<GenerationEnd> ends(4);
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i].prompt_tokens = i < 2 ? 10 : 100;
    ends[i].cached_tokens = i < 2 ? 0 : 16;
    ends[i].generated_tokens = 1;
    ends[i].proposed_tokens = 3;
    ends[i].accepted_tokens = i < 2 ? 2 : 0;
  }
  // The second of a prompt found the first's blocks; nobody asked for those twice.
  ends[1].cached_tokens = 10;
  const json usage = usage_json(ends, 2);
  EXPECT_EQ(usage["prompt_tokens"], 110);
  EXPECT_EQ(usage["completion_tokens"], 4);
  EXPECT_EQ(usage["total_tokens"], 114);
  EXPECT_EQ(usage["completion_tokens_details"]["accepted_prediction_tokens"], 4);
  EXPECT_EQ(usage["completion_tokens_details"]["rejected_prediction_tokens"], 8);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 16);
  EXPECT_EQ(usage_json({}, 1)["total_tokens"], 0);
}

TEST_F(OpenAiReply, AWholeCompletion) {
  Choice choice{.text = " there", .tokens = {token(" there", -0.5f)}, .end = {}};
  choice.end.reason = FinishReason::kTimeLimit;
  const json reply = reply_json(completion_, std::vector{choice}, 1, true, *tokenizer_);
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["choices"][0]["text"], " there");
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  const json logprobs = reply["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json{" there"});
  EXPECT_EQ(logprobs["token_logprobs"].size(), 1u);
  EXPECT_TRUE(logprobs["top_logprobs"][0].contains(" there"));
  EXPECT_TRUE(
      reply_json(completion_, std::vector{choice}, 1, false, *tokenizer_)["choices"][0]["logprobs"]
          .is_null());
}

// A token that was drawn is among the likeliest, and those that are half a character differ.
TEST_F(OpenAiReply, LogprobsOfACompletionCanBeLookedUp) {
  GeneratedToken drawn = token(" there", -3);
  uint32_t id = 0;
  drawn.top.resize(2);
  for (TopLogprob& top : drawn.top) {  // two that are no text of their own
    while (utf8_valid_prefix(tokenizer_->piece(id, true)) > 0 ||
           tokenizer_->piece(id, true).empty())
      ++id;
    top.id = id++;
    top.logprob = -1;
  }
  const Choice choice{.text = " there", .tokens = {drawn, drawn}, .end = {}};
  const json logprobs =
      reply_json(completion_, std::vector{choice}, 1, true, *tokenizer_)["choices"][0]["logprobs"];
  const json& top = logprobs["top_logprobs"][1];
  EXPECT_EQ(top.size(), 3u) << top;
  EXPECT_EQ(top[logprobs["tokens"][1].get<std::string>()], -3);
  EXPECT_EQ(logprobs["text_offset"], (json{0, 6}));
  for (const auto& [key, value] : top.items())
    EXPECT_TRUE(key == " there" || key.starts_with("bytes:\\x")) << key;
}

TEST_F(OpenAiReply, PartsOfAStream) {
  const json first = first_chunk(chat_, 1);
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["index"], 1);
  EXPECT_EQ(first["choices"][0]["delta"]["role"], "assistant");
  size_t offset = 0;
  const json middle = token_chunk(chat_, 0, token(" there", -1), *tokenizer_, offset);
  EXPECT_EQ(middle["choices"][0]["delta"]["content"], " there");
  EXPECT_TRUE(middle["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(middle["choices"][0]["logprobs"]["content"].size(), 1u);
  EXPECT_TRUE(token_chunk(chat_, 0, token(" there", -1))["choices"][0]["logprobs"].is_null());
  // Of a completion they say where in the text they are.
  for (const int at : {0, 6}) {
    const json chunk = token_chunk(completion_, 0, token(" there", -1), *tokenizer_, offset);
    EXPECT_EQ(chunk["choices"][0]["logprobs"]["text_offset"], json{at});
  }
  GenerationEnd end;
  end.reason = FinishReason::kStop;
  EXPECT_EQ(last_chunk(chat_, 0, end)["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(last_chunk(chat_, 0, end)["choices"][0]["delta"].empty());
  // Text that was held back for a stop string which did not come.
  end.text = "rest";
  EXPECT_EQ(last_chunk(chat_, 0, end)["choices"][0]["delta"]["content"], "rest");
  EXPECT_EQ(last_chunk(completion_, 0, end)["choices"][0]["text"], "rest");
  const json usage = usage_chunk(chat_, std::vector{end}, 1);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_TRUE(usage.contains("usage"));
}

TEST_F(OpenAiReply, ErrorsNameTheField) {
  const json error = error_json({.message = "no", .param = "n"})["error"];
  EXPECT_EQ(error["message"], "no");
  EXPECT_EQ(error["param"], "n");
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_TRUE(error["code"].is_null());
}

TEST_F(OpenAiReply, HalfACharacterIsStillText) {
  EXPECT_EQ(to_text(json{{"a", "\xc3"}}), "{\"a\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(to_event(json{{"a", "x\ny"}}), "data: {\"a\":\"x\\ny\"}\n\n");
}

}  // namespace
}  // namespace hearth
