// The listings of the file dialog.
#include "ui/data/file_browser.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class FileBrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / "hearth_file_browser_test";
    fs::remove_all(root_);
    fs::create_directories(root_ / "beta");
    fs::create_directories(root_ / "Alpha");
    fs::create_directories(root_ / ".hidden");
    std::ofstream(root_ / "Alpha" / "config.json") << "{}";
    std::ofstream(root_ / "small.GGUF") << "12345";
    std::ofstream(root_ / "notes.txt") << "x";
    std::ofstream(root_ / ".secret.gguf") << "x";
  }
  void TearDown() override { fs::remove_all(root_); }

  bool settles(FileBrowser& browser) {
    return comes_true([&] {
      browser.update();
      return !browser.busy() && !browser.listing().folder.empty();
    });
  }

  fs::path root_;
};

TEST_F(FileBrowserTest, ListsFoldersAndModelsOnly) {
  const FolderListing listing = list_folder(root_);
  EXPECT_EQ(listing.failure, "");
  const std::vector<FileEntry> expected{{.name = "Alpha", .folder = true, .model = true},
                                        {.name = "beta", .folder = true},
                                        {.name = "small.GGUF", .model = true, .bytes = 5}};
  EXPECT_EQ(listing.entries, expected);
}

TEST_F(FileBrowserTest, OpensFoldersParentsAndTheFolderOfAFile) {
  FileBrowser browser;
  browser.open(root_ / "small.GGUF");
  ASSERT_TRUE(settles(browser));
  EXPECT_EQ(browser.listing().folder, root_);
  browser.open(browser.path_of(browser.listing().entries[0]));
  ASSERT_TRUE(comes_true([&] {
    browser.update();
    return browser.listing().folder == root_ / "Alpha";
  }));
  browser.up();
  ASSERT_TRUE(comes_true([&] {
    browser.update();
    return browser.listing().folder == root_;
  }));
  browser.open(root_ / "nowhere" / "model.gguf");
  browser.update();
  ASSERT_TRUE(settles(browser));
  EXPECT_EQ(browser.listing().folder, root_);
  browser.open("/");
  browser.up();
  ASSERT_TRUE(comes_true([&] {
    browser.update();
    return browser.listing().folder == "/";
  })) << "the root has no parent";
}

TEST_F(FileBrowserTest, ReportsAnUnreadableFolder) {
  const FolderListing listing = list_folder(root_ / "nowhere");
  EXPECT_THAT(listing.failure, ::testing::HasSubstr("nowhere"));
  EXPECT_TRUE(listing.entries.empty());
}

}  // namespace
}  // namespace hearth::testing
