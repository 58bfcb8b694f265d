// Files and the chat: a text file that is attached to a question, and a conversation that is saved
// for other programs.
#pragma once

#include <filesystem>
#include <string>

#include "ui/data/chat.h"
#include "ui/theme.h"

namespace hearth {

class ChatFiles {
 public:
  // A button that opens a box for a path. Returns true if a file was added to the chat's draft.
  bool draw_attach(Chat& chat, const Theme& theme);
  // Adds a file to the draft. Returns false, and shows why, if it is not a text file.
  bool attach(Chat& chat, const std::filesystem::path& path);
  // The buttons that save a conversation, with the path they save it to.
  void draw_export(const Chat& chat, const Theme& theme);
  // What went wrong, or where the last file was saved.
  const std::string& message() const { return message_; }

 private:
  std::string path_, folder_, message_;
};

}  // namespace hearth
