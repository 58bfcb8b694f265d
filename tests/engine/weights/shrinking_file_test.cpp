// A model file that another program makes shorter while it is read: an error that names the file,
// never a signal.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/text/vocabulary.h"
#include "engine/weights/mapped_file.h"
#include "engine/weights/quantize_file.h"
#include "tests/engine/weights/model_files.h"
#include "tests/support/sanitizers.h"

namespace hearth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kBig = 1 << 20;

// A model with a vocabulary in its first page and a megabyte of tensors after it.
std::string large_gguf() {
  GgufKeys keys = test::small_keys();
  keys.add("tokenizer.ggml.model", "llama");
  return test::small_gguf(keys, {{.name = "token_embd.weight",
                                  .format = WeightFormat::kF32,
                                  .rows = kBig / 1024,
                                  .cols = 256}});
}

// Reads every byte, and returns how many are zero.
std::ptrdiff_t zeros_in(std::span<const std::byte> bytes) {
  return std::ranges::count(bytes, std::byte{0});
}
// Reads every byte, even if the compiler sees no use for it.
void touch(std::span<const std::byte> bytes) {
  [[maybe_unused]] volatile std::ptrdiff_t zeros = zeros_in(bytes);
}

std::string problem_in(const Status& status) {
  return status.ok() ? std::string() : status.error().message;
}

class ShrinkingFile : public ::testing::Test {
 protected:
  void shrink(std::uint64_t bytes) { std::filesystem::resize_file(path_, bytes); }
  std::uint64_t size() const { return std::filesystem::file_size(path_); }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.gguf";
};

TEST_F(ShrinkingFile, MissingTensorsOfAGgufFileAreAnErrorOnAnyThread) {
  folder_.write("model.gguf", large_gguf());
  const auto file = ModelFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE((*file)->check_files().ok());
  shrink(size() / 2);
  const std::span<const std::byte> bytes = (*file)->find("token_embd.weight")->bytes;
  std::vector<std::ptrdiff_t> zeros(4);
  {
    std::vector<std::jthread> readers;
    for (std::ptrdiff_t& count : zeros) readers.emplace_back([&] { count = zeros_in(bytes); });
  }
  for (const std::ptrdiff_t count : zeros) EXPECT_GT(count, std::ptrdiff_t{kBig / 2 - 8192});
  EXPECT_THAT(problem_in((*file)->check_files()),
              AllOf(HasSubstr(path_.string()), HasSubstr("became shorter")));
}

TEST_F(ShrinkingFile, AFewMissingBytesAreNoticedWithoutAFault) {
  folder_.write("model.gguf", large_gguf());
  const auto file = ModelFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  shrink(size() - 1);
  EXPECT_THAT(problem_in((*file)->check_files()), HasSubstr("became shorter"));
}

TEST_F(ShrinkingFile, AFileThatShrankAndGrewAgainIsAnError) {
  folder_.write("model.gguf", large_gguf());
  const auto file = ModelFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const std::uint64_t before = size();
  shrink(4096);
  touch((*file)->find("token_embd.weight")->bytes);
  shrink(before);
  EXPECT_THAT(problem_in((*file)->check_files()), HasSubstr("could not be read"));
}

TEST_F(ShrinkingFile, AMissingVocabularyIsAnError) {
  folder_.write("model.gguf", large_gguf());
  const auto file = ModelFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  shrink(0);
  const auto vocabulary = read_vocabulary(**file);
  ASSERT_FALSE(vocabulary.ok());
  EXPECT_THAT(vocabulary.error().message, HasSubstr("became shorter"));
}

TEST_F(ShrinkingFile, MissingTensorsOfASafetensorsFileAreAnError) {
  const auto golden =
      std::filesystem::path(HEARTH_SOURCE_DIR) / "tests" / "models" / "golden" / "llama";
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(golden / name, folder_ / name);
  path_ = folder_ / "model.safetensors";
  const auto file = ModelFile::open(folder_.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  shrink(4096);
  for (const ModelTensor& tensor : (*file)->tensors()) touch(tensor.bytes);
  EXPECT_THAT(problem_in((*file)->check_files()),
              AllOf(HasSubstr(path_.string()), HasSubstr("became shorter")));
}

TEST_F(ShrinkingFile, QuantizingItIsAnErrorAndLeavesNothingBehind) {
  for (const char* type : {"Q8_0", "F32"}) {  // converted and copied
    folder_.write("model.gguf", large_gguf());
    const auto model = GgufFile::open(path_);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto shrink_once = [&](const auto&, auto, std::uint64_t) {
      shrink(8192);
      return true;
    };
    const auto report =
        quantize_file(**model, folder_ / "out.gguf", *find_quantize_type(type), 2, shrink_once);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message,
                AllOf(HasSubstr(path_.string()), HasSubstr("became shorter")));
    const auto entries = std::filesystem::directory_iterator(folder_.path());
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
  }
}

// The guard is for mapped files only: any other fault ends the program as before.
TEST_F(ShrinkingFile, OtherFaultsAreNotHidden) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  folder_.write("model.gguf", large_gguf());
  const auto read_beyond = [&] {
    const auto watched = MappedFile::open(path_);
    const auto other = folder_ / "other";
    folder_.write("other", std::string(8192, 'x'));
    std::FILE* const file = std::fopen(other.c_str(), "rb");
    void* const bytes = ::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
    std::filesystem::resize_file(other, 0);
    touch({static_cast<const std::byte*>(bytes), 8192});
  };
  const auto ends = [](int status) {
    return testing::kSanitized ? status != 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
  };
  EXPECT_EXIT(read_beyond(), ends, "");
}

}  // namespace
}  // namespace hearth
