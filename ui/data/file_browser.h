// Folders and model files to choose from. Lists a folder in the background, so that a slow disk
// never delays a frame. Call only from the window's thread.
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
  bool model = false;  // a .gguf file or a Hugging Face model folder
  uint64_t bytes = 0;  // 0 for folders
  bool operator==(const FileEntry&) const = default;
};

struct FolderListing {
  std::filesystem::path folder;
  std::vector<FileEntry> entries;  // folders first, then files, by name ignoring case
  std::string failure;             // why there are no entries
};

// Lists folders and models, except hidden ones. Blocks.
FolderListing list_folder(const std::filesystem::path& folder);

class FileBrowser {
 public:
  // Switches to a folder with the next update(). If the path is not a folder, opens the nearest
  // parent folder.
  void open(const std::filesystem::path& path);
  // Switches to the parent folder.
  void up();
  // Call once per frame.
  void update();

  bool busy() const { return background_.busy(); }
  // The newest listing; stays until the next one is complete.
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
