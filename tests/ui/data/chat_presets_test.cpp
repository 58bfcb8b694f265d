#include "ui/data/chat_presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChatPresets, EachModelHasItsOwnAndTheyAreSaved) {
  Chat chat;
  chat.system = "Answer in rhyme.";
  chat.sampling.custom = true;
  chat.sampling.options.temperature = 0.25f;
  chat.sampling.max_tokens = 77;
  ChatPresets presets;
  presets.save("llama", "poet", chat);
  presets.save("llama", "dry", Chat());
  presets.save("qwen", "poet", Chat());
  const ChatPresets again(nlohmann::json::parse(presets.saved().dump()));
  EXPECT_THAT(again.names("llama"), ElementsAre("dry", "poet"));
  EXPECT_THAT(again.names("other"), IsEmpty());
  const ChatPreset* const poet = again.find("llama", "poet");
  ASSERT_NE(poet, nullptr);
  Chat other;
  other.draft = "kept";
  use_preset(*poet, other);
  EXPECT_EQ(other.system, "Answer in rhyme.");
  EXPECT_TRUE(other.sampling.custom);
  EXPECT_FLOAT_EQ(other.sampling.options.temperature, 0.25f);
  EXPECT_EQ(other.sampling.max_tokens, 77u);
  EXPECT_EQ(other.draft, "kept");
  presets.remove("llama", "poet");
  EXPECT_EQ(presets.find("llama", "poet"), nullptr);
  EXPECT_NE(presets.find("qwen", "poet"), nullptr);
}

TEST(ChatPresets, WhatCannotBeReadIsLeftOut) {
  const ChatPresets presets(
      nlohmann::json::parse(R"({"a": 3, "b": {"x": 1, "y": {"messages": []}}})"));
  EXPECT_THAT(presets.names("a"), IsEmpty());
  EXPECT_THAT(presets.names("b"), ElementsAre("y"));
}

}  // namespace
}  // namespace hearth
