// All conversations, kept as one JSON file each: read in the background when the program starts,
// written in the background whenever one changes. Of the window's thread alone.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ui/data/chat.h"
#include "ui/data/file_writer.h"

namespace hearth {

class ChatHistory {
 public:
  // Begins to read what is in the folder. An empty path: nothing is kept.
  explicit ChatHistory(std::filesystem::path folder);

  // Takes over what has been read. False while there is more to come; then chats() has only what
  // was begun since.
  bool load();
  // Returns when everything is read and written.
  void wait();

  // The oldest first.
  const std::vector<std::unique_ptr<Chat>>& chats() const { return chats_; }
  Chat* find(std::string_view id) const;
  // Gives it an id. A blank conversation is not written.
  Chat& add(Chat chat);
  void save(const Chat& chat);
  // Its file is removed; restore() brings the last one back, until there is another.
  void remove(std::string_view id);
  Chat* restore();
  const Chat* removed() const { return removed_.get(); }
  void forget_removed() { removed_.reset(); }

  // Files that could not be read; they are left as they are.
  const std::vector<std::string>& unreadable() const { return unreadable_; }
  // Why conversations cannot be written at the moment; empty: they can.
  std::string failure() const { return files_.failure(); }

 private:
  struct Loaded {
    std::vector<std::unique_ptr<Chat>> chats;
    std::vector<std::string> unreadable;
  };
  static Loaded read_folder(const std::filesystem::path& folder);
  std::filesystem::path file_of(std::string_view id) const;
  std::string new_id() const;

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<Chat>> chats_;
  std::vector<std::string> unreadable_;
  std::unique_ptr<Chat> removed_;
  std::vector<std::string> removed_early_;  // before all was read
  std::future<Loaded> loading_;
  FileWriter files_;
};

// Numbers for ChatExchange::revision.
std::uint64_t next_revision();

}  // namespace hearth
