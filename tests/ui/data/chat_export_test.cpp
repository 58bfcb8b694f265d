#include "ui/data/chat_export.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

Chat exported_chat() {
  Chat chat{.title = "A lost boat!", .system = "Be brief."};
  ChatExchange exchange;
  exchange.question = "Where is the *boat*?";
  exchange.reply.text = "<think>Hm.\nWell.</think>In the **harbour**.";
  exchange.reply.form = {.calls = "hermes", .reasoning = "<think>"};
  chat.exchanges.push_back(exchange);
  return chat;
}

TEST(ChatExport, MarkdownHasBothSpeakersAndQuotesTheReasoning) {
  EXPECT_EQ(export_markdown(exported_chat()),
            "# A lost boat!\n\n*System prompt:* Be brief.\n\n## You\n\nWhere is the *boat*?\n\n"
            "## Model\n\n> Hm.\n> Well.\n\nIn the **harbour**.\n");
}

TEST(ChatExport, JsonIsAListOfMessages) {
  const auto json = nlohmann::json::parse(export_json(exported_chat()));
  EXPECT_EQ(json["title"], "A lost boat!");
  ASSERT_EQ(json["messages"].size(), 3u);
  EXPECT_EQ(json["messages"][0]["role"], "system");
  EXPECT_EQ(json["messages"][1]["content"], "Where is the *boat*?");
  EXPECT_EQ(json["messages"][2]["role"], "assistant");
  EXPECT_EQ(json["messages"][2]["content"], "In the **harbour**.");
}

TEST(ChatExport, FileNamesAreMadeOfTheTitle) {
  EXPECT_EQ(export_name(exported_chat(), "md"), "a-lost-boat.md");
  EXPECT_EQ(export_name({.title = "../../etc"}, "json"), "etc.json");
  EXPECT_EQ(export_name({.title = "?!"}, "md"), "chat.md");
}

TEST(ChatExport, ASearchCountsMessagesInAnyCase) {
  const Chat chat = exported_chat();
  EXPECT_EQ(search_chat(chat, "BOAT"), 2u);  // the title and the question
  EXPECT_EQ(search_chat(chat, "harbour"), 1u);
  EXPECT_EQ(search_chat(chat, "whale"), 0u);
  EXPECT_EQ(search_chat(chat, ""), 0u);
}

TEST(ChatExport, AnAttachedFileIsFencedWithItsName) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const auto path = folder / ("attached_" + std::to_string(getpid()) + ".py");
  std::ofstream(path) << "print(1)";
  auto text = attachment(path);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text.value(), path.filename().string() + ":\n```\nprint(1)\n```\n");
  std::ofstream(path) << "a ``` fence\n";
  text = attachment(path);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(text.value(), HasSubstr("````\na ``` fence\n````\n"));
  std::ofstream(path, std::ios::binary) << std::string("a\0b", 3);
  EXPECT_FALSE(attachment(path).ok());
  std::ofstream(path, std::ios::binary) << "caf\xe9";
  text = attachment(path);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("not a text file"));
  std::ofstream(path) << std::string(300 << 10, 'x');
  EXPECT_FALSE(attachment(path).ok());
  EXPECT_TRUE(is_attachment(path));
  EXPECT_FALSE(is_attachment(folder));
  EXPECT_FALSE(is_attachment(folder / "model.gguf"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hearth
