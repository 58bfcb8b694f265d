#include "ui/data/chat_history.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/log.h"
#include "tools/chat/conversation.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChatHistoryTest : public ::testing::Test {
 protected:
  ChatHistoryTest() { std::filesystem::remove_all(folder); }
  ~ChatHistoryTest() override { std::filesystem::remove_all(folder); }

  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("hearth_chats_") +
       ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
       std::to_string(getpid()));
};

ChatReply story() {
  ChatReply reply;
  reply.text = "The f\u00f6x";
  reply.tokens = {{.id = 7,
                   .text = "The",
                   .probability = 0.5f,
                   .alternatives = {{.id = 7, .text = "The", .probability = 0.5f},
                                    {.id = 9, .text = "A\\n", .probability = 0.25f}}},
                  {.id = 3, .text = "", .probability = 0.125f, .alternatives = {}},
                  {.id = 4, .text = " f\u00f6x", .probability = 1, .alternatives = {}}};
  reply.kept_tokens = 1;
  reply.finish = FinishReason::kLength;
  reply.first_token_seconds = 0.035;
  reply.tokens_per_s = 107.25;
  reply.prompt_tokens = 64;
  reply.cached_tokens = 12;
  reply.left_out = 2;
  return reply;
}

Chat fox_chat() {
  Chat chat;
  chat.title = "A fox";
  chat.titled = true;
  chat.system = "Be brief.";
  chat.sampling.custom = true;
  chat.sampling.options.temperature = 0.25f;
  chat.sampling.options.top_k = 40;
  chat.sampling.options.top_p = 0.5f;
  chat.sampling.options.min_p = 0.125f;
  chat.sampling.options.repetition_penalty = 1.5f;
  chat.sampling.options.seed = 0xfedcba9876543210;
  chat.sampling.new_seed = false;
  chat.sampling.max_tokens = 99;
  chat.exchanges.push_back(
      {.question = "Tell me \"of\"\na f\u00f6x.", .reply = story(), .revision = 0, .json = {}});
  return chat;
}

TEST_F(ChatHistoryTest, EverythingIsRestoredInTheNextRun) {
  std::string id;
  {
    ChatHistory history(folder);
    history.wait();
    Chat& chat = history.add(fox_chat());
    id = chat.id;
    chat.exchanges.push_back({.question = "More", .reply = {}, .revision = 1, .json = {}});
    chat.exchanges.back().reply.error = "the device is gone";
    chat.exchanges.back().reply.finish = FinishReason::kError;
    chat.open = false;
    history.save(chat);
  }
  EXPECT_EQ(files(), 1u);
  ChatHistory history(folder);
  history.wait();
  ASSERT_EQ(history.chats().size(), 1u);
  const Chat& chat = *history.chats().front();
  const Chat expected = fox_chat();
  EXPECT_EQ(chat.id, id);
  EXPECT_EQ(chat.title, "A fox");
  EXPECT_TRUE(chat.titled);
  EXPECT_FALSE(chat.open);
  EXPECT_EQ(chat.system, "Be brief.");
  const SamplingOptions& options = chat.sampling.options;
  EXPECT_TRUE(chat.sampling.custom);
  EXPECT_EQ(options.temperature, 0.25f);
  EXPECT_EQ(options.top_k, 40u);
  EXPECT_EQ(options.top_p, 0.5f);
  EXPECT_EQ(options.min_p, 0.125f);
  EXPECT_EQ(options.repetition_penalty, 1.5f);
  EXPECT_EQ(options.seed, 0xfedcba9876543210);
  EXPECT_FALSE(chat.sampling.new_seed);
  EXPECT_EQ(chat.sampling.max_tokens, 99u);
  ASSERT_EQ(chat.exchanges.size(), 2u);
  EXPECT_EQ(chat.exchanges[0].question, expected.exchanges[0].question);
  EXPECT_NE(chat.exchanges[0].revision, chat.exchanges[1].revision);
  const ChatReply& reply = chat.exchanges[0].reply;
  const ChatReply wanted = story();
  EXPECT_EQ(reply.text, wanted.text);
  ASSERT_EQ(reply.tokens.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reply.tokens[i].id, wanted.tokens[i].id);
    EXPECT_EQ(reply.tokens[i].text, wanted.tokens[i].text);
    EXPECT_EQ(reply.tokens[i].probability, wanted.tokens[i].probability);
  }
  ASSERT_EQ(reply.tokens[0].alternatives.size(), 2u);
  EXPECT_EQ(reply.tokens[0].alternatives[1].id, 9u);
  EXPECT_EQ(reply.tokens[0].alternatives[1].text, "A\\n");
  EXPECT_EQ(reply.tokens[0].alternatives[1].probability, 0.25f);
  EXPECT_EQ(reply.kept_tokens, 1u);
  EXPECT_EQ(reply.finish, FinishReason::kLength);
  EXPECT_NEAR(reply.first_token_seconds, 0.035, 1e-9);
  EXPECT_NEAR(reply.tokens_per_s, 107.25, 1e-9);
  EXPECT_EQ(reply.prompt_tokens, 64u);
  EXPECT_EQ(reply.cached_tokens, 12u);
  EXPECT_EQ(reply.left_out, 2u);
  EXPECT_EQ(chat.exchanges[1].reply.finish, FinishReason::kError);
  EXPECT_EQ(chat.exchanges[1].reply.error, "the device is gone");
}

TEST_F(ChatHistoryTest, AnAnswerInProgressIsSavedEachTime) {
  ChatHistory history(folder);
  Chat& chat = history.add(fox_chat());
  ChatReply& reply = chat.exchanges[0].reply;
  reply.finish = FinishReason::kNone;
  chat.exchanges[0].json.clear();
  history.save(chat);
  reply.text += " ran";
  reply.tokens.push_back({.id = 8, .text = " ran", .probability = 1, .alternatives = {}});
  history.save(chat);
  history.wait();
  // As after a crash: another program reads the folder.
  ChatHistory later(folder);
  later.wait();
  ASSERT_EQ(later.chats().size(), 1u);
  const ChatReply& read = later.chats()[0]->exchanges.at(0).reply;
  EXPECT_EQ(read.text, "The f\u00f6x ran");
  EXPECT_EQ(read.tokens.size(), 4u);
  EXPECT_EQ(read.finish, FinishReason::kNone);
  EXPECT_EQ(describe_end(read), "interrupted");
}

TEST_F(ChatHistoryTest, HearthChatReadsTheFileToo) {
  ChatHistory history(folder);
  const Chat& chat = history.add(fox_chat());
  history.wait();
  const auto conversation = Conversation::load(folder / (chat.id + ".json"));
  ASSERT_TRUE(conversation.ok()) << conversation.error().message;
  EXPECT_EQ(conversation->system(), "Be brief.");
  ASSERT_EQ(conversation->messages().size(), 2u);
  EXPECT_EQ(conversation->messages()[1].content, "The f\u00f6x");
}

TEST_F(ChatHistoryTest, AnUnreadableFileIsLeftUntouchedAndLogged) {
  std::string id;
  {
    ChatHistory history(folder);
    id = history.add(fox_chat()).id;
  }
  const std::string wrong_type = R"({"messages":[{"role":"user","content":5},{}]})";
  std::ofstream(folder / "10000101-000000-broken.json") << "{\"messages\":[";
  std::ofstream(folder / "10000101-000001-types.json") << wrong_type;
  std::ofstream(folder / "a draft.json.new") << "half";
  std::vector<std::string> lines;
  const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
  ChatHistory history(folder);
  history.wait();
  ASSERT_EQ(history.chats().size(), 1u);
  EXPECT_EQ(history.chats()[0]->id, id);
  EXPECT_THAT(history.unreadable(),
              ElementsAre("10000101-000000-broken.json", "10000101-000001-types.json"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("not valid JSON"));
  EXPECT_THAT(lines[1], HasSubstr("not a conversation"));
  EXPECT_EQ(files(), 4u);
}

// Conversations from before the model's defaults were used keep the options they were saved with.
TEST_F(ChatHistoryTest, SavedSamplingOptionsAreKept) {
  const auto old = read_chat(R"({"sampling":{"temperature":0.5},"messages":[]})");
  ASSERT_TRUE(old.ok()) << old.error().message;
  EXPECT_TRUE(old->sampling.custom);
  EXPECT_EQ(old->sampling.options.temperature, 0.5f);
  const auto fresh = read_chat(write_chat({}));
  ASSERT_TRUE(fresh.ok()) << fresh.error().message;
  EXPECT_FALSE(fresh->sampling.custom);
}

TEST_F(ChatHistoryTest, InvalidUtf8DoesNotSpoilTheFile) {
  Chat chat = fox_chat();
  chat.exchanges[0].question = "half \xe2\x82";
  const auto read = read_chat(write_chat(chat));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->exchanges[0].question, "half \ufffd");
}

TEST_F(ChatHistoryTest, RemovingDeletesTheFileAndUndoRestoresIt) {
  ChatHistory history(folder);
  history.wait();
  const std::string first = history.add(fox_chat()).id;
  const std::string second = history.add(fox_chat()).id;
  ASSERT_LT(first, second);
  history.wait();
  EXPECT_EQ(files(), 2u);
  history.remove(first);
  history.wait();
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(history.find(first), nullptr);
  ASSERT_NE(history.removed(), nullptr);
  Chat* const back = history.restore();
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(history.chats().front().get(), back);
  EXPECT_EQ(history.restore(), nullptr);
  history.wait();
  EXPECT_EQ(files(), 2u);
  history.remove("never there");
}

TEST_F(ChatHistoryTest, EmptyConversationsLeaveNoFile) {
  ChatHistory history(folder);
  history.add({});
  history.wait();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ChatHistoryTest, WithoutAFolderNothingIsSaved) {
  ChatHistory history({});
  EXPECT_TRUE(history.load());
  Chat& chat = history.add(fox_chat());
  history.remove(chat.id);
  EXPECT_NE(history.restore(), nullptr);
  history.wait();
  EXPECT_EQ(history.failure(), "");
}

TEST_F(ChatHistoryTest, AWriteErrorIsReportedUntilAWriteSucceeds) {
  std::ofstream(folder) << "a file where the folder should be";
  ChatHistory history(folder);
  const Chat& chat = history.add(fox_chat());
  history.wait();
  EXPECT_THAT(history.failure(), HasSubstr(folder.filename().string()));
  std::filesystem::remove(folder);
  history.save(chat);
  history.wait();
  EXPECT_EQ(history.failure(), "");
}

TEST(ChatTitles, AreTheFirstWordsOfTheQuestion) {
  EXPECT_EQ(title_from_question("  Hello\n there "), "Hello there");
  EXPECT_EQ(title_from_question("Tell me a story about a fox and a kite."),
            "Tell me a story about a fox...");
  EXPECT_EQ(title_from_question("\n"), "");
  EXPECT_EQ(title_from_question(std::string(50, 'x')), std::string(28, 'x') + "...");
  // Cut between characters, not between bytes.
  std::string long_word;
  for (int i = 0; i < 40; ++i) long_word += "\u00e9";
  EXPECT_EQ(title_from_question(long_word), long_word.substr(0, 56) + "...");
}

TEST(ChatTitles, BranchesAreNumbered) {
  EXPECT_EQ(branch_title("A fox"), "A fox (branch)");
  EXPECT_EQ(branch_title("A fox (branch)"), "A fox (branch 2)");
  EXPECT_EQ(branch_title("A fox (branch 9)"), "A fox (branch 10)");
  EXPECT_EQ(branch_title("A fox (branch of a tree)"), "A fox (branch of a tree) (branch)");
}

TEST(ChatTitles, AnswersAreDescribedInOneLine) {
  ChatReply reply;
  reply.tokens.resize(42);
  reply.tokens_per_s = 106.7;
  reply.first_token_seconds = 0.0354;
  reply.prompt_tokens = 64;
  reply.cached_tokens = 12;
  EXPECT_EQ(describe(reply),
            "42 tokens, 107 tokens/s, TTFT 35 ms, 12 of 64 prompt tokens from the prefix cache");
  reply.kept_tokens = 41;
  reply.tokens_per_s = 0;
  reply.first_token_seconds = 1.25;
  reply.cached_tokens = 0;
  EXPECT_EQ(describe(reply), "1 token after 41 kept, TTFT 1.2 s");
  EXPECT_EQ(reply.context_tokens(), 65u);
}

}  // namespace
}  // namespace hearth::testing
