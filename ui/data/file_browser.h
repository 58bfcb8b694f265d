// Folders and model files to choose from: lists a folder in the background, so that a slow disk
// never holds up a frame. Of the window's thread alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ui/data/background_task.h"

namespace hearth {

struct FileEntry {
  std::string name;
  bool folder = false;
  bool model = false;  // a .gguf file, or a folder as Hugging Face has them
  uint64_t bytes = 0;  // of a file
  bool operator==(const FileEntry&) const = default;
};

struct FolderListing {
  std::filesystem::path folder;
  std::vector<FileEntry> entries;  // folders first, then models, by name in any case
  std::string failure;             // why there is nothing
};

// Folders and models; nothing that begins with a dot. Blocks.
FolderListing list_folder(const std::filesystem::path& folder);

class FileBrowser {
 public:
  // Another folder, from the next update() on. A path that is no folder: the nearest
  // folder above it.
  void open(const std::filesystem::path& path);
  // The folder above.
  void up();
  // Once a frame while it is shown.
  void update();

  bool busy() const { return background_.busy(); }
  // The newest there is; stays while the next one is being made.
  const FolderListing& listing() const { return listing_; }
  std::filesystem::path path_of(const FileEntry& entry) const {
    return listing_.folder / entry.name;
  }

 private:
  std::filesystem::path wanted_;
  bool pending_ = false;
  BackgroundTask<FolderListing> background_;
  FolderListing listing_;
};

}  // namespace hearth
