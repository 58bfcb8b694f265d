// A model file that another program makes shorter while it is loaded, and afterwards.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/session.h"

namespace hearth::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ShrinkingModel : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf", path_,
                               std::filesystem::copy_options::overwrite_existing);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<std::unique_ptr<Session>> open(SessionOptions options = {}) {
    HEARTH_ASSIGN(auto file, ModelFile::open(path_));
    options.context = 64;
    options.max_sequences = 1;
    return Session::open(std::move(file), options);
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("hearth-shrinking-" + std::to_string(getpid()) + ".gguf");
};

TEST_F(ShrinkingModel, LoadingItIsAnError) {
  int calls = 0;
  const auto session = open({.progress = [&](uint64_t, uint64_t) {
    if (++calls == 1) std::filesystem::resize_file(path_, 4096);
  }});
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.error().message,
              AllOf(HasSubstr(path_.string()), HasSubstr("became shorter")));
  EXPECT_EQ(calls, 1) << "it goes on reading";
}

TEST_F(ShrinkingModel, OnceLoadedTheFileDoesNotMatter) {
  const auto session = open();
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto generate = [&] {
    GenerationRequest request{.prompt = (*session)->tokenizer()->encode("Once upon a time"),
                              .max_tokens = 8};
    auto stream = (*session)->engine().submit(std::move(request));
    EXPECT_TRUE(stream.ok());
    std::string text;
    while (const auto token = stream->next()) text += token->text;
    return text;
  };
  const std::string before = generate();
  EXPECT_FALSE(before.empty());
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(generate(), before);
  EXPECT_TRUE((*session)->chat_template().ok());
}

}  // namespace
}  // namespace hearth::testing
