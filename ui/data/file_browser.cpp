#include "ui/data/file_browser.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <fmt/format.h>

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 10'000;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

FolderListing list_folder(const fs::path& folder) {
  FolderListing listing{.folder = folder};
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error) {
    listing.failure = fmt::format("cannot read '{}': {}", folder.string(), error.message());
    return listing;
  }
  for (const fs::directory_iterator end; entry != end && listing.entries.size() < kMaxEntries;
       entry.increment(error)) {
    if (error) break;
    // Skips entries that vanish meanwhile or are not accessible.
    std::error_code ignored;
    FileEntry listed{.name = entry->path().filename().string()};
    if (listed.name.starts_with('.')) continue;
    if (entry->is_directory(ignored)) {
      listed.folder = true;
      listed.model = fs::exists(entry->path() / "config.json", ignored);
    } else if (entry->is_regular_file(ignored) &&
               lower(entry->path().extension().string()) == ".gguf") {
      listed.model = true;
      listed.bytes = entry->file_size(ignored);
      if (ignored) listed.bytes = 0;
    } else {
      continue;
    }
    listing.entries.push_back(std::move(listed));
  }
  std::ranges::sort(listing.entries, {}, [](const FileEntry& one) {
    return std::tuple(!one.folder, lower(one.name), one.name);
  });
  return listing;
}

void FileBrowser::open(const fs::path& path) {
  wanted_ = path;
  pending_ = true;
}

void FileBrowser::up() {
  const fs::path& here = pending_ ? wanted_ : listing_.folder;
  open(here.has_parent_path() ? here.parent_path() : here);
}

void FileBrowser::update() {
  if (std::optional<FolderListing> done = background_.take()) listing_ = *std::move(done);
  if (!pending_ || background_.busy()) return;
  pending_ = false;
  background_.start([path = wanted_] {
    std::error_code ignored;
    fs::path folder = fs::absolute(path, ignored).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    while (!fs::is_directory(folder, ignored) && folder.has_relative_path())
      folder = folder.parent_path();
    return list_folder(folder);
  });
}

}  // namespace hearth
