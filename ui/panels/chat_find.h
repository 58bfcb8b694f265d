// The search bar of the chat: marks what it finds in the conversation on display, and names the
// other conversations that have it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/data/chat_controller.h"
#include "ui/theme.h"

namespace hearth {

class ChatFind {
 public:
  void open() { open_ = focus_ = true; }
  // The text to mark; empty while the bar is closed.
  std::string wanted() const { return open_ ? text_ : std::string(); }
  // Draws the bar if it is open. `found` is how often the text occurs in the conversation `shown`.
  // Returns another conversation that the user wants to see, or null.
  Chat* draw(const ChatController& chats, const Chat& shown, size_t found, const Theme& theme);
  // How many other conversations have the text.
  size_t others() const { return others_.size(); }

 private:
  std::string text_, searched_;
  std::vector<std::string> others_;  // ids, the newest first
  bool open_ = false, focus_ = false;
};

}  // namespace hearth
