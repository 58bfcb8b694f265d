// All conversations, each saved as a JSON file: read in the background at startup and written in
// the background whenever one changes. Call only from the window's thread.
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
  // Starts to read the folder. An empty path means that nothing is saved.
  explicit ChatHistory(std::filesystem::path folder);

  // Adds the chats that were read. Returns false while reading is in progress; until then chats()
  // holds only new ones.
  bool load();
  // Returns once everything is read and written.
  void wait();

  // Oldest first.
  const std::vector<std::unique_ptr<Chat>>& chats() const { return chats_; }
  Chat* find(std::string_view id) const;
  // Assigns an id. A blank conversation is not saved.
  Chat& add(Chat chat);
  void save(const Chat& chat);
  // Deletes the chat and its file. restore() brings back the most recently removed one.
  void remove(std::string_view id);
  Chat* restore();
  const Chat* removed() const { return removed_.get(); }
  void forget_removed() { removed_.reset(); }

  // Files that could not be read; they are left untouched.
  const std::vector<std::string>& unreadable() const { return unreadable_; }
  // Why the last save failed; empty if it succeeded.
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
  std::vector<std::string> removed_early_;  // removed before reading finished
  std::future<Loaded> loading_;
  FileWriter files_;
};

// Returns a new value for ChatExchange::revision.
std::uint64_t next_revision();

}  // namespace hearth
