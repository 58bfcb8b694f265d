// Replacing the model of a conversation, with loads that fail.
#include "tools/chat/replaceable_model.h"

#include <gtest/gtest.h>

#include "engine/open_model_file.h"

namespace hearth {
namespace {

constexpr const char* kConversationModel =
    HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class ChatModelTest : public ::testing::Test {
 protected:
  // Every name is the same small model. Loading fails as often as `failures_` says.
  ModelOpener opener() {
    return {.find = [this](const std::string& name) -> Result<std::unique_ptr<ModelFile>> {
              if (name == "missing") return Error{ErrorKind::kNotFound, "no such model"};
              found_.push_back(name);
              return open_model_file(kConversationModel);
            },
            .load = [this](std::unique_ptr<ModelFile> file) -> Result<std::unique_ptr<Session>> {
              if (failures_ > 0) {
                --failures_;
                return Error{ErrorKind::kOutOfMemory, "it does not fit"};
              }
              ++loads_;
              return Session::open(std::move(file), {.context = 64, .max_sequences = 1});
            }};
  }

  std::vector<std::string> found_;
  int failures_ = 0, loads_ = 0;
};

TEST_F(ChatModelTest, IsReplaced) {
  auto model = ReplaceableModel::open(opener(), "old");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE(model->replace("new").ok());
  EXPECT_TRUE(model->loaded());
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(model->context(), 64u);
}

TEST_F(ChatModelTest, StaysLoadedIfTheOtherOneIsNotFound) {
  auto model = ReplaceableModel::open(opener(), "old");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Session* const session = &model->session();
  const Status status = model->replace("missing");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no such model");
  EXPECT_EQ(&model->session(), session) << "it was not unloaded";
  EXPECT_EQ(loads_, 1);
}

TEST_F(ChatModelTest, ComesBackIfTheOtherOneCannotBeLoaded) {
  auto model = ReplaceableModel::open(opener(), "old");
  ASSERT_TRUE(model.ok()) << model.error().message;
  failures_ = 1;
  const Status status = model->replace("new");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "it does not fit");
  ASSERT_TRUE(model->loaded());
  EXPECT_EQ(found_, (std::vector<std::string>{"old", "new", "old"}));
  // It is the old one that comes back after another failure, too.
  failures_ = 1;
  EXPECT_FALSE(model->replace("newer").ok());
  EXPECT_TRUE(model->loaded());
  EXPECT_EQ(found_.back(), "old");
}

TEST_F(ChatModelTest, IsGoneIfItCannotBeLoadedAgain) {
  auto model = ReplaceableModel::open(opener(), "old");
  ASSERT_TRUE(model.ok()) << model.error().message;
  failures_ = 2;
  EXPECT_FALSE(model->replace("new").ok());
  EXPECT_FALSE(model->loaded());
}

TEST_F(ChatModelTest, IsNotOpenedIfItCannotBeFoundOrLoaded) {
  ModelOpener broken = opener();
  broken.find = [](const std::string& name) { return open_model_file(name); };
  EXPECT_FALSE(ReplaceableModel::open(broken, "/nonexistent.gguf").ok());
  failures_ = 1;
  EXPECT_FALSE(ReplaceableModel::open(opener(), "old").ok());
}

}  // namespace
}  // namespace hearth
