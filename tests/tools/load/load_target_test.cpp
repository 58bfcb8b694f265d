// What a load finds out about a server before it begins, against scripted servers and Hearth's own.
#include "tools/load/load_target.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tests/tools/load/load_peer.h"
#include "tools/load/load_prompt.h"
#include "tools/load/load_run.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

Result<LoadedServer> probe_port(int port, LoadedServer target = {}) {
  const auto transfers = HttpTransfers::create().value();
  target.server = {.host = "127.0.0.1", .port = std::to_string(port)};
  return probe_target(*transfers, target);
}

std::string probe_error(int port, LoadedServer target = {}) {
  const auto result = probe_port(port, std::move(target));
  return result.ok() ? "no error" : result.error().message;
}

class LoadTargetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
  }
};

TEST_F(LoadTargetTest, FindsModelContextAndIds) {
  LoadPeer peer(
      {.answer = [](const auto&, const auto& wire, size_t) { stream_answer(wire, 2, 2); }});
  const auto target = probe_port(peer->port());
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_EQ(target->model, "stub");
  EXPECT_EQ(target->context, 4096u);
  EXPECT_EQ(target->form, PromptForm::kIds);
  EXPECT_THAT(target->ids, ::testing::ElementsAre(11, 12, 13, 14, 15, 16, 17, 18));
  EXPECT_TRUE(target->ignore_eos && target->include_usage && target->counts_tokens);
}

TEST_F(LoadTargetTest, LeavesOutFieldsThatTheServerRefuses) {
  LoadPeer peer({.answer = [](const auto& body, const auto& wire, size_t) {
    if (body.contains("ignore_eos"))
      return wire.reply(400, R"({"error":{"message":"unknown field ignore_eos"}})");
    stream_answer(wire, 2, 0);
  }});
  const auto target = probe_port(peer->port());
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_FALSE(target->ignore_eos);
  EXPECT_TRUE(target->include_usage);
  EXPECT_FALSE(target->counts_tokens);
}

TEST_F(LoadTargetTest, WithoutTokenizerItMeasuresHowManyTokensWordsAre) {
  // Every word is two tokens, and the chat template adds seven.
  LoadPeer peer({.tokenizes = false, .answer = [](const auto& body, const auto& wire, size_t) {
                   const std::string text = body["messages"][0]["content"];
                   const auto words = static_cast<int>(std::ranges::count(text, ' ')) + 1;
                   stream_answer(wire, 2, 2, 0, 2 * words + 7);
                 }});
  LoadedServer chat;
  chat.endpoint = LoadEndpoint::kChat;
  const auto target = probe_port(peer->port(), chat);
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_EQ(target->form, PromptForm::kText);
  EXPECT_DOUBLE_EQ(target->tokens_per_word, 2);
  EXPECT_DOUBLE_EQ(target->fixed_tokens, 7);
  const auto body = nlohmann::json::parse(
      LoadPrompts(*target, 1).body({.prompt_tokens = 107, .generated_tokens = 3}, 0));
  const std::string text = body["messages"][0]["content"];
  EXPECT_EQ(std::ranges::count(text, ' ') + 1, 50);
}

TEST_F(LoadTargetTest, PromptsShareThePrefixesOfTheTrace) {
  LoadedServer target;
  target.form = PromptForm::kText;
  target.tokens_per_word = 2;
  const LoadPrompts prompts(target, 1);
  const TraceRequest request{.prompt_tokens = 40, .prefix_ids = {3}, .tokens_per_prefix_id = 20};
  const auto text = [&](size_t index) {
    return nlohmann::json::parse(prompts.body(request, index))["prompt"].get<std::string>();
  };
  const std::string a = text(0), b = text(1);
  EXPECT_NE(a, b);
  const auto common = std::ranges::mismatch(a, b).in1 - a.begin();
  const auto words = std::count(a.begin(), a.begin() + common, ' ');
  EXPECT_GE(words, 10);
  EXPECT_LE(words, 12);
  const auto other = nlohmann::json::parse(LoadPrompts(target, 2).body(request, 0));
  EXPECT_NE(a, other["prompt"].get<std::string>());
}

TEST_F(LoadTargetTest, OneLineSaysWhatIsWrong) {
  EXPECT_THAT(probe_error(1), HasSubstr("http://127.0.0.1:1: Connection refused"));
  const auto answering = [](int status) {
    return LoadPeerOptions{.answer = [=](const auto&, const auto& wire, size_t) {
      wire.reply(status, R"({"error":{"message":"because"}})");
    }};
  };
  LoadPeer locked(answering(401)), missing(answering(404)), wrong(answering(400));
  EXPECT_THAT(probe_error(locked->port()), HasSubstr("--key"));
  EXPECT_THAT(probe_error(missing->port()), HasSubstr("--endpoint"));
  EXPECT_THAT(probe_error(wrong->port()), HasSubstr("400 (because)"));
  LoadPeer whole({.answer = [](const auto&, const auto& wire, size_t) {
    wire.reply(200, R"({"choices":[{"text":"a"}]})");
  }});
  EXPECT_THAT(probe_error(whole->port()), HasSubstr("does not stream"));
  LoadPeer plain({.tokenizes = false, .answer = [](const auto&, const auto& wire, size_t) {
                    stream_answer(wire, 1, 1);
                  }});
  LoadedServer ids;
  ids.form = PromptForm::kIds;
  EXPECT_THAT(probe_error(plain->port(), ids), HasSubstr("--prompt-as text"));
}

TEST_F(LoadTargetTest, TheAddressMayBeThatOfTheApi) {
  EXPECT_EQ(load_server(*parse_server_url("http://box/v1")).at("/v1/x"), "http://box:80/v1/x");
  EXPECT_EQ(load_server(*parse_server_url("https://box/api/v1/chat/completions")).at("/v1/x"),
            "https://box:443/api/v1/x");
}

// Hearth's own server, on a stand-in for the device.
class LoadOfHearth : public ServedStandIn {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
    ServedStandIn::SetUp();
  }
};

TEST_F(LoadOfHearth, EveryTokenOfTheTraceIsGenerated) {
  for (const LoadEndpoint endpoint : {LoadEndpoint::kCompletions, LoadEndpoint::kChat}) {
    LoadedServer wanted;
    wanted.endpoint = endpoint;
    const auto target = probe_port(server_->port(), wanted);
    ASSERT_TRUE(target.ok()) << target.error().message;
    EXPECT_EQ(target->form, endpoint == LoadEndpoint::kChat ? PromptForm::kText : PromptForm::kIds);
    EXPECT_EQ(target->context, 256u);
    EXPECT_TRUE(target->ignore_eos && target->include_usage && target->counts_tokens);
    const Trace trace = make_synthetic_trace("n=20,prompt=80,gen=4..30").value();
    const auto transfers = HttpTransfers::create().value();
    const LoadRun run = run_load(*transfers, *target, trace, {.clients = 5});
    for (size_t i = 0; i < run.requests.size(); ++i) {
      EXPECT_EQ(run.requests[i].state, LoadedRequest::State::kCompleted) << run.requests[i].error;
      EXPECT_EQ(run.requests[i].tokens, trace.requests[i].generated_tokens);
      // Ids are counted exactly, words are estimated.
      EXPECT_NEAR(static_cast<double>(run.requests[i].prompt_tokens), 80,
                  endpoint == LoadEndpoint::kChat ? 30 : 0);
    }
  }
}

}  // namespace
}  // namespace hearth::testing
