// Reading files with a limit, and replacing them as a whole.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/host/read_file.h"
#include "runtime/host/replace_file.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_ = fs::temp_directory_path() / ("hearth-files-" + std::to_string(getpid()));
  fs::path file_ = folder_ / "file";
};

TEST_F(FilesTest, AFileIsReadUpToTheLimit) {
  const std::string text(100'000, 'x');
  std::ofstream(file_) << text;
  EXPECT_EQ(*read_file(file_, {.most_bytes = 100'000}), text);
  const auto larger = read_file(file_, {.most_bytes = 99'999});
  ASSERT_FALSE(larger.ok());
  EXPECT_THAT(larger.error().message, HasSubstr("file is too large: at most 99999 bytes"));
  std::ofstream(file_, std::ios::trunc).close();
  EXPECT_EQ(*read_file(file_, {.most_bytes = 0}), "");
}

TEST_F(FilesTest, AnEndlessDeviceIsAnError) {
  const auto zeros = read_file("/dev/zero", {.most_bytes = 1 << 20});
  ASSERT_FALSE(zeros.ok());
  EXPECT_EQ(zeros.error().message, "/dev/zero is too large: at most 1 MiB are read");
}

TEST_F(FilesTest, WhatIsNotAFileIsAnError) {
  EXPECT_THAT(read_file(folder_, {.most_bytes = 9}).error().message, HasSubstr("is a folder"));
  const auto absent = read_file(file_, {.most_bytes = 9});
  EXPECT_EQ(absent.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(absent.error().message, HasSubstr("cannot open " + file_.string()));
  // Without a writer: opening it would wait.
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(read_file(file_, {.most_bytes = 9, .regular_only = true}).error().message,
              HasSubstr("not a regular file"));
}

TEST_F(FilesTest, APipeIsReadToItsEnd) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const std::jthread writer([&] { std::ofstream(file_) << "from a program"; });
  EXPECT_EQ(*read_file(file_, {.most_bytes = 100}), "from a program");
}

TEST_F(FilesTest, AFileIsReplacedAsAWhole) {
  ASSERT_TRUE(replace_file(file_, "old").ok());
  ASSERT_TRUE(replace_file(file_, "new", {.permissions = 0600}).ok());
  EXPECT_EQ(*read_file(file_, {.most_bytes = 100}), "new");
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0600));
  EXPECT_EQ(files(), 1u);
  EXPECT_FALSE(replace_file(folder_ / "sub" / "file", "x").ok());
  EXPECT_TRUE(replace_file(folder_ / "sub" / "file", "x", {.create_folder = true}).ok());
}

TEST_F(FilesTest, OnlyARegularFileIsReplaced) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(replace_file(file_, "x").error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(replace_file(folder_, "x").error().message, HasSubstr("not a regular file"));
  EXPECT_TRUE(fs::is_fifo(file_));
}

TEST_F(FilesTest, APipeWithTheTemporaryNameDoesNotBlock) {
  const std::string temporary = file_.string() + "." + std::to_string(getpid()) + ".new";
  ASSERT_EQ(mkfifo(temporary.c_str(), 0600), 0);
  EXPECT_TRUE(replace_file(file_, "new").ok());
  EXPECT_EQ(files(), 1u);
}

// A limit on the size of files fails in the middle of a write, as a full disk does.
TEST_F(FilesTest, AFullDiskLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(replace_file(file_, "old").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = replace_file(file_, std::string(10'000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("cannot write " + file_.string()));
  EXPECT_EQ(*read_file(file_, {.most_bytes = 100}), "old");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace hearth
