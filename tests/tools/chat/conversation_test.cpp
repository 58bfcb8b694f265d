// Conversations without a terminal or a model: the prompt that messages become, which of them are
// left out when the context is full, and the file they are saved in.
#include "tools/chat/conversation.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ConversationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto vocabulary = read_vocabulary(**file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    auto chat = ChatTemplate::create(*vocabulary);
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    chat_ = std::move(chat).value();
    auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(tokenizer).value();
  }
  static void TearDownTestSuite() {
    tokenizer_.reset();
    chat_.reset();
  }
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("conversation_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Conversation three_exchanges() {
    Conversation conversation;
    conversation.set_system("You are brief.");
    for (const char* word : {"one", "two", "three"}) {
      conversation.add_user(std::string("Question ") + word);
      conversation.add_assistant(std::string("Answer ") + word);
    }
    return conversation;
  }
  static size_t tokens(const Conversation& conversation) {
    const auto prompt = conversation.prompt(*chat_, *tokenizer_, 1 << 20, 0);
    EXPECT_TRUE(prompt.ok());
    return prompt->ids.size();
  }
  static std::string text(const FittedPrompt& prompt) {
    return tokenizer_->decode(prompt.ids, true);
  }

  std::string write(const std::string& content) {
    const auto path = folder_ / "file.json";
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  static inline std::unique_ptr<Tokenizer> tokenizer_;
  static inline std::unique_ptr<ChatTemplate> chat_;
  std::filesystem::path folder_;
};

TEST_F(ConversationTest, UndoTakesAQuestionWithItsAnswer) {
  Conversation conversation = three_exchanges();
  EXPECT_EQ(conversation.last_question(), "Question three");
  EXPECT_EQ(conversation.undo(), "Question three");
  EXPECT_EQ(conversation.messages().size(), 4u);
  EXPECT_EQ(conversation.messages().back().content, "Answer two");
  // A question without an answer is removed alone.
  conversation.add_user("Question four");
  EXPECT_EQ(conversation.undo(), "Question four");
  EXPECT_EQ(conversation.undo(), "Question two");
  EXPECT_EQ(conversation.undo(), "Question one");
  EXPECT_EQ(conversation.undo(), "");
  EXPECT_TRUE(conversation.messages().empty());
  EXPECT_EQ(conversation.system(), "You are brief.");
}

TEST_F(ConversationTest, DroppingAnAnswerKeepsItsQuestion) {
  Conversation conversation = three_exchanges();
  EXPECT_TRUE(conversation.drop_answer());
  EXPECT_EQ(conversation.messages().size(), 5u);
  EXPECT_EQ(conversation.messages().back().content, "Question three");
  // Doing it again changes nothing.
  EXPECT_TRUE(conversation.drop_answer());
  EXPECT_EQ(conversation.messages().size(), 5u);
  conversation.clear();
  EXPECT_FALSE(conversation.drop_answer());
  EXPECT_EQ(conversation.last_question(), "");
}

TEST_F(ConversationTest, APromptHasAllMessagesThatFit) {
  const Conversation conversation = three_exchanges();
  const auto prompt = conversation.prompt(*chat_, *tokenizer_, 4096, 512);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->left_out, 0u);
  for (const char* part : {"You are brief.", "Question one", "Answer one", "Answer three"})
    EXPECT_THAT(text(*prompt), HasSubstr(part));
}

TEST_F(ConversationTest, TheOldestExchangesAreLeftOutWhenTheContextIsFull) {
  Conversation conversation = three_exchanges();
  conversation.add_user("Question four");
  const auto all = static_cast<uint32_t>(tokens(conversation));
  constexpr uint32_t kRoom = 20;
  // Exactly enough is enough.
  auto prompt = conversation.prompt(*chat_, *tokenizer_, all + kRoom, kRoom);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->left_out, 0u);
  // With one token less, the first question and its answer are left out; the system prompt stays.
  prompt = conversation.prompt(*chat_, *tokenizer_, all + kRoom - 1, kRoom);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->left_out, 2u);
  EXPECT_THAT(text(*prompt), Not(HasSubstr("one")));
  EXPECT_THAT(text(*prompt), HasSubstr("Question two"));
  EXPECT_THAT(text(*prompt), HasSubstr("You are brief."));
  // The conversation itself still has it.
  EXPECT_EQ(conversation.messages().size(), 7u);

  for (uint32_t context = all + kRoom; context > kRoom; --context) {
    prompt = conversation.prompt(*chat_, *tokenizer_, context, kRoom);
    if (!prompt.ok()) break;
    EXPECT_LT(prompt->ids.size(), context);
    EXPECT_EQ(prompt->left_out % 2, 0u);
    if (prompt->left_out < 6) {
      EXPECT_LE(prompt->ids.size() + kRoom, context);
    }
    EXPECT_THAT(text(*prompt), HasSubstr("Question four"));
  }
}

TEST_F(ConversationTest, TheLastQuestionMayHaveLessRoomButNotNone) {
  Conversation conversation;
  conversation.add_user("Once upon a time there was a little fox.");
  const auto all = static_cast<uint32_t>(tokens(conversation));
  EXPECT_TRUE(conversation.prompt(*chat_, *tokenizer_, all + 1, 100).ok());
  const auto refused = conversation.prompt(*chat_, *tokenizer_, all, 100);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(all) + " tokens"));
}

TEST_F(ConversationTest, SavesAndLoads) {
  Conversation conversation = three_exchanges();
  conversation.add_user("several\nlines, \"quotes\", a tab\t, \xc3\xa9\xf0\x9f\xa6\x8a");
  const auto path = folder_ / "kept.json";
  ASSERT_TRUE(conversation.save(path).ok());
  ASSERT_TRUE(conversation.save(path).ok()) << "over the old one";
  const auto loaded = Conversation::load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->system(), conversation.system());
  ASSERT_EQ(loaded->messages().size(), conversation.messages().size());
  for (size_t i = 0; i < loaded->messages().size(); ++i) {
    EXPECT_EQ(loaded->messages()[i].role, conversation.messages()[i].role);
    EXPECT_EQ(loaded->messages()[i].content, conversation.messages()[i].content);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no draft stays";
}

TEST_F(ConversationTest, AFailedSaveLeavesNothingBehind) {
  const Conversation conversation = three_exchanges();
  const Status nowhere = conversation.save(folder_ / "missing" / "file");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("missing/file: No such file or directory"));
  std::filesystem::create_directories(folder_ / "folder" / "full");
  EXPECT_FALSE(conversation.save(folder_ / "folder").ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(ConversationTest, ABrokenFileGivesOneClearLine) {
  const auto complaint = [](const std::string& path) {
    const auto loaded = Conversation::load(path);
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  EXPECT_THAT(complaint((folder_ / "none").string()), HasSubstr("cannot open"));
  const char* const no_conversation = "file.json: not a conversation saved by hearth chat";
  const char* const no_content = "file.json: a message lacks its role or its content";
  const char* const no_turns = "file.json: messages of user and assistant do not alternate";
  const std::pair<std::string, const char*> cases[] = {
      {"", no_conversation},
      {"{\"messages\":[", no_conversation},
      {"[]", no_conversation},
      {"{}", no_conversation},
      {R"({"messages":{"role":"user"}})", no_conversation},
      {"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", no_conversation},
      {std::string(1 << 20, '['), no_conversation},
      {R"({"messages":[1]})", no_content},
      {R"({"messages":[{"role":"user"}]})", no_content},
      {R"({"messages":[{"role":"user","content":null}]})", no_content},
      {R"({"messages":[{"role":"robot","content":"hello"}]})", no_turns},
      {R"({"messages":[{"role":"assistant","content":"hello"}]})", no_turns},
      {R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]})", no_turns},
  };
  for (const auto& [content, expected] : cases) {
    const std::string message = complaint(write(content));
    EXPECT_THAT(message, HasSubstr(expected)) << content.substr(0, 100);
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace hearth
