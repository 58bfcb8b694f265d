// Chat with, load on and control of a server that the dashboard is connected to: a real server on a
// stand-in engine.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_peer.h"
#include "tests/support/served_stand_in.h"
#include "ui/data/chat_controller.h"
#include "ui/data/chat_parts.h"
#include "ui/data/load_generator.h"
#include "ui/data/remote_answer.h"
#include "ui/feeds/remote_control.h"
#include "ui/feeds/remote_feed.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRemoteKey = "open sesame";

std::unique_ptr<RemoteCalls> calls_to(int port, const std::string& key = kRemoteKey) {
  auto calls = RemoteCalls::create("http://127.0.0.1:" + std::to_string(port), key);
  EXPECT_TRUE(calls.ok());
  return calls.ok() ? std::move(*calls) : nullptr;
}

class RemoteServerTest : public ServedStandIn {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
    ServedStandIn::SetUp();
    serve({.port = 0, .api_keys = {kRemoteKey}, .control = true});
    calls_ = calls_to(server_->port());
    model_ = {.context = 256, .generation = 1, .remote = calls_.get()};
  }
  void TearDown() override {
    calls_.reset();
    ServedStandIn::TearDown();
  }
  bool answered(Chat& chat) {
    return comes_true([&] {
      chats_.update(&model_, 0);
      return !chats_.answering(chat);
    });
  }

  std::unique_ptr<RemoteCalls> calls_;
  ChatModel model_;
  ChatController chats_{{}};
};

TEST_F(RemoteServerTest, AQuestionIsAnsweredWithItsTokens) {
  Chat& chat = chats_.new_chat(nullptr);
  chat.sampling.max_tokens = 12;
  chats_.ask(chat, "Tell me a story.", model_);
  ASSERT_TRUE(answered(chat));
  const ChatReply& reply = chat.exchanges[0].reply;
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.finish, FinishReason::kLength);
  EXPECT_EQ(reply.tokens.size(), 12u);
  EXPECT_GT(reply.prompt_tokens, 3u);
  std::string text;
  for (const ChatToken& token : reply.tokens) {
    text += token.text;
    EXPECT_GT(token.probability, 0);
    EXPECT_LT(token.id, token.alternatives.size());
  }
  EXPECT_EQ(text, reply.text);
  EXPECT_FALSE(text.empty());
  EXPECT_GT(reply.first_token_seconds, 0);

  // The server sees the conversation so far, and finds its beginning in the prefix cache.
  chats_.ask(chat, "And then?", model_);
  ASSERT_TRUE(answered(chat));
  EXPECT_GT(chat.exchanges[1].reply.prompt_tokens, reply.prompt_tokens + 12);
}

TEST_F(RemoteServerTest, StoppingAnAnswerCancelsItsRequest) {
  Chat& chat = chats_.new_chat(nullptr);
  (*engine_)->set_pace(50);
  chats_.ask(chat, "Tell me a long story.", model_);
  ASSERT_TRUE(comes_true([&] {
    chats_.update(&model_, 0);
    return chat.exchanges[0].reply.tokens.size() > 1;
  }));
  chats_.stop(chat, model_);
  ASSERT_TRUE(answered(chat));
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kCancelled);
  EXPECT_EQ(chat.exchanges[0].reply.error, "");
  EXPECT_TRUE(comes_true([&] { return (*engine_)->metrics().running.value() == 0; }));
  EXPECT_EQ((*engine_)->metrics().finished_cancelled.value(), 1u);
}

TEST_F(RemoteServerTest, AWrongKeyIsReportedInTheAnswer) {
  const auto others = calls_to(server_->port(), "wrong");
  model_.remote = others.get();
  Chat& chat = chats_.new_chat(nullptr);
  chats_.ask(chat, "Hello?", model_);
  ASSERT_TRUE(answered(chat));
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kError);
  EXPECT_THAT(chat.exchanges[0].reply.error, HasSubstr("--api-key"));
}

TEST_F(RemoteServerTest, AnAnswerEndsWithItsConnection) {
  Chat& chat = chats_.new_chat(nullptr);
  (*engine_)->pause();
  chats_.ask(chat, "Hello?", model_);
  chats_.update(nullptr, 0);
  EXPECT_FALSE(chats_.answering(chat));
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kCancelled);
}

TEST_F(RemoteServerTest, AnswersCannotBeContinuedThere) {
  Chat& chat = chats_.new_chat(nullptr);
  chat.sampling.max_tokens = 3;
  chats_.ask(chat, "Hello?", model_);
  ASSERT_TRUE(answered(chat));
  const ChatToken token = chat.exchanges[0].reply.tokens[1];
  EXPECT_EQ(chats_.branch(chat, 0, 1, token.alternatives[0], model_), nullptr);
  EXPECT_THAT(chat.exchanges[0].reply.error, HasSubstr("not continued"));
}

TEST_F(RemoteServerTest, SyntheticRequestsRunOnTheServer) {
  LoadGenerator load;
  load.settings = {.prompt_min = 5, .prompt_max = 20, .generate_min = 4, .generate_max = 9};
  const LoadTarget target{.generation = 1,
                          .remote = calls_.get(),
                          .remote_limits = (*engine_)->limits(),
                          .remote_vocabulary = tokenizer_->size()};
  load.burst(6);
  ASSERT_TRUE(comes_true([&] {
    load.update(target, 0);
    return load.counts().answered == 6;
  })) << load.refusal();
  EXPECT_EQ((*engine_)->metrics().generated_tokens.value(), load.counts().tokens);
  EXPECT_EQ(load.refusal(), "");

  // Slowly enough that they are still running when they are cancelled.
  (*engine_)->set_pace(20);
  load.settings.generate_min = load.settings.generate_max = 200;
  load.burst(2);
  ASSERT_TRUE(comes_true([&] {
    load.update(target, 0);
    return (*engine_)->metrics().requests_submitted.value() == 8;
  }));
  load.cancel_all();
  EXPECT_EQ(load.counts().unanswered, 0u);
  EXPECT_TRUE(comes_true([&] { return (*engine_)->metrics().finished_cancelled.value() == 2; }));
}

TEST_F(RemoteServerTest, TheServerIsControlledFromTheDashboard) {
  auto feed = RemoteFeed::create("http://127.0.0.1:" + std::to_string(server_->port()),
                                 {.api_key = kRemoteKey});
  ASSERT_TRUE(feed.ok());
  RemoteControl control(*calls_);
  EngineView view;
  const auto comes = [&](auto condition) {
    return comes_true([&] {
      (*feed)->poll(view);
      if (view.controllable) control.update(view);
      return condition();
    });
  };
  ASSERT_TRUE(comes([&] { return view.controllable; }));
  EXPECT_EQ(control.initial_limits().max_sequences, 8u);
  EXPECT_FALSE(control.paused());

  Policy wanted = *named_policy("static");
  wanted.prefix_cache = !wanted.prefix_cache;
  control.set_policy(wanted);
  ASSERT_TRUE(comes([&] { return control.policy() == wanted; }));
  EXPECT_EQ((*engine_)->policy(), wanted);
  control.set_limits(2, 24, 100);
  ASSERT_TRUE(comes([&] { return control.limits().pool_blocks == 100; }));
  EXPECT_EQ((*engine_)->limits().max_step_tokens, 24u);
  control.set_pace(1000);
  ASSERT_TRUE(comes([&] { return view.pace == 1000; }));
  control.pause(true);
  ASSERT_TRUE(comes([&] { return control.paused(); }));
  auto stream = (*engine_)->submit({.prompt = {5, 6, 7}, .max_tokens = 50, .ignore_end = true});
  ASSERT_TRUE(stream.ok());
  const uint64_t steps = (*engine_)->records().written();
  control.step_once();
  ASSERT_TRUE(comes([&] { return (*engine_)->records().written() == steps + 1; }));
  control.cancel(stream->request());
  control.pause(false);
  EXPECT_TRUE(comes([&] { return (*engine_)->metrics().finished_cancelled.value() == 1; }));
  EXPECT_EQ(control.failure(), "");
}

// While one has no reply yet, only the last value of a slider waits.
TEST_F(RemoteServerTest, ADraggedSliderSendsItsLastValue) {
  RemoteControl control(*calls_);
  const EngineView view{.connected = true, .controllable = true};
  for (uint32_t value = 1; value <= 7; ++value) {
    control.set_limits(value, 64, 0);
    control.update(view);
  }
  ASSERT_TRUE(comes_true([&] {
    control.update(view);
    return (*engine_)->limits().max_sequences == 7;
  }));
  EXPECT_EQ(control.failure(), "");
}

TEST_F(RemoteServerTest, AServerStartedWithoutControlRefusesIt) {
  serve({.port = 0, .api_keys = {kRemoteKey}});
  const auto calls = calls_to(server_->port());
  RemoteControl control(*calls);
  const EngineView view{.connected = true};
  control.pause(true);
  ASSERT_TRUE(comes_true([&] {
    control.update(view);
    return !control.failure().empty();
  }));
  EXPECT_THAT(control.failure(), HasSubstr("without --control"));
  EXPECT_EQ((*engine_)->state(), EngineState::kRunning);
}

TEST(RemoteAnswerBody, OldExchangesAreDroppedOnceTheContextIsFull) {
  Chat chat;
  chat.system = "Be brief.";
  for (uint32_t i = 0; i < 4; ++i) {
    ChatExchange exchange{.question = "q" + std::to_string(i)};
    exchange.reply = {.text = "a" + std::to_string(i), .tokens = std::vector<ChatToken>(10)};
    exchange.reply.prompt_tokens = 20 + 60 * i;  // 30, 90, 150, 210 tokens with the answer
    chat.exchanges.push_back(std::move(exchange));
  }
  chat.exchanges.push_back({.question = "q4"});
  uint32_t left_out = 7;
  const auto all = remote_chat_body(chat, 4, 1000, left_out);
  EXPECT_EQ(left_out, 0u);
  EXPECT_EQ(all["messages"].size(), 10u);
  EXPECT_EQ(all["messages"][0]["role"], "system");
  EXPECT_FALSE(all.contains("temperature"));  // the model's own
  // 192 of 256 are for the prompt, so the first exchange goes: 210 - 30 tokens are left.
  const auto some = remote_chat_body(chat, 4, 256, left_out);
  EXPECT_EQ(left_out, 2u);
  EXPECT_EQ(some["messages"][1]["content"], "q1");
  EXPECT_EQ(some["messages"].back()["content"], "q4");
}

std::string remote_chunk(const std::string& delta, const std::string& tokens) {
  return R"(data: {"choices":[{"index":0,"delta":)" + delta + R"(,"logprobs":{"content":[)" +
         tokens + "]}}]}\n\n";
}
std::string remote_entry(const std::string& token) {
  return R"({"token":")" + token + R"(","logprob":-0.5,"top_logprobs":[]})";
}

// Reasoning, a character of two tokens, a marker without text, and an end.
TEST(RemoteAnswerText, TextReasoningAndTokensAgree) {
  if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
  const std::string body =
      remote_chunk(R"({"reasoning_content":"Hm"})",
                   remote_entry("<think>") + "," + remote_entry("Hm")) +
      remote_chunk(R"({"content":"A"})", remote_entry("</think>") + "," + remote_entry("A")) +
      remote_chunk(R"({"content":" fox"})", remote_entry(" fox")) +
      R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
      "\n\n"
      R"(data: {"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}})"
      "\n\ndata: [DONE]\n\n";
  const ScriptedPeer peer([&](const ScriptedPeer::Asked&, const ScriptedPeer::Wire& wire) {
    wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" +
              body);
  });
  {
    auto calls = RemoteCalls::create(peer.url(), "key").value();
    const ChatModel model{.context = 256, .generation = 1, .remote = calls.get()};
    ChatController chats{{}};
    Chat& chat = chats.new_chat(nullptr);
    chats.ask(chat, "Hello?", model);
    ASSERT_TRUE(comes_true([&] {
      chats.update(&model, 0);
      return !chats.answering(chat);
    }));
    const ChatReply& reply = chat.exchanges[0].reply;
    EXPECT_EQ(reply.error, "");
    EXPECT_EQ(reply.text, "<think>Hm</think>A fox");
    EXPECT_EQ(answer_text(reply), "A fox");
    EXPECT_EQ(reply.finish, FinishReason::kStop);
    EXPECT_EQ(reply.tokens.size(), 5u);
    EXPECT_EQ(reply.prompt_tokens, 9u);
    EXPECT_EQ(reply.cached_tokens, 4u);
    std::string text;
    for (const ChatToken& token : reply.tokens) text += token.text;
    EXPECT_EQ(text, reply.text);
  }
}

}  // namespace
}  // namespace hearth::testing
