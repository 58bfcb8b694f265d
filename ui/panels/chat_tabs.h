// The tabs of the chat panel: one per open conversation, with menus to rename, close and delete it,
// and the list of all conversations. What is closed or deleted is gone at the end of draw().
#pragma once

#include <functional>
#include <string>

#include "ui/data/chat_controller.h"

namespace hearth {

class ChatTabs {
 public:
  // What the panel does; called during draw().
  struct Hooks {
    std::function<void(const Chat& chat)> show;         // another tab comes to the front
    std::function<void(Chat& chat)> draw;               // the conversation in front
    std::function<void()> begin_chat;                   // the user wants a new one
    std::function<void(const Chat& chat)> draw_export;  // in a tab's menu
  };
  void draw(ChatController& chats, const Hooks& hooks);

  // Brings the chat's tab to the front in the next frame.
  void select(const Chat& chat) { shown_ = select_ = chat.id; }
  // The id of the conversation in front.
  const std::string& shown() const { return shown_; }
  // Draws a line that offers to bring back the conversation that was deleted last, if there is one.
  void draw_undo(ChatController& chats);

 private:
  void draw_tab_menu(ChatController& chats, Chat& chat, const Hooks& hooks);
  void draw_history_menu(ChatController& chats, const Hooks& hooks);

  std::string shown_, select_;
  std::string new_title_;
  std::string remove_, close_;  // ids, processed at the end of the frame
  bool undo_ = false;
};

}  // namespace hearth
