// What can be done with conversations: ask, stop, ask again, change a question, branch off at a
// token. Keeps the answers that are being generated, one a conversation, and has everything saved
// as it comes. Of the window's thread alone.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "ui/data/chat_answer.h"
#include "ui/data/chat_history.h"

namespace hearth {

class ChatController {
 public:
  explicit ChatController(std::filesystem::path folder) : history_(std::move(folder)) {}

  ChatHistory& history() { return history_; }
  const ChatHistory& history() const { return history_; }

  // Once a frame: takes what was generated. `model`: null if there is none that could answer.
  // `now`: seconds on any clock.
  void update(const ChatModel* model, double now);

  // A new conversation with another's system prompt and sampling, if one is given.
  Chat& new_chat(const Chat* settings_from);
  // Each drops what follows in the conversation, and first the answer that is being generated
  // there. What goes wrong is the reply's error.
  void ask(Chat& chat, std::string question, const ChatModel& model);
  void edit_question(Chat& chat, size_t exchange, std::string question, const ChatModel& model);
  void regenerate(Chat& chat, const ChatModel& model);
  // Goes on with the last reply where it was stopped or cut off. Of another model's it stays as it
  // is, with an error; so does one that is branched from.
  void continue_answer(Chat& chat, const ChatModel& model);
  bool can_continue(const Chat& chat) const;
  // Another conversation that is the same up to this token, has the alternative there, and goes on
  // from it. If the reply is still being generated, the two share its KV blocks. Null: there is
  // none.
  Chat* branch(Chat& chat, size_t exchange, size_t token, const ChatAlternative& alternative,
               const ChatModel& model);
  void stop(const Chat& chat, const ChatModel& model);
  void rename(Chat& chat, std::string title);
  // Its draft, system prompt or sampling was changed: it is saved within seconds.
  void mark_unsaved(const Chat& chat) { unsaved_.insert(chat.id); }
  // Closes its tab; a blank one is gone.
  void close(Chat& chat);
  void remove(const Chat& chat);

  bool answering(const Chat& chat) const { return answers_.contains(chat.id); }
  // The request that answers, and how long it has; 0: none.
  RequestId request(const Chat& chat) const;
  double answer_seconds(const Chat& chat) const;
  size_t answers() const { return answers_.size(); }
  // Has everything written that was not yet; it is on the disk when this is gone, at the latest.
  void save_all();

 private:
  void save_unsaved();
  void start(Chat& chat, const ChatModel& model, const ChatAnswer* parent = nullptr);
  void cancel_answer(Chat& chat);
  // Whether the model could have given the reply; else the reply's error says so.
  static bool check_same_model(Chat& chat, size_t exchange, const ChatModel& model);

  ChatHistory history_;
  std::map<std::string, std::unique_ptr<ChatAnswer>, std::less<>> answers_;  // by the chat's id
  std::set<std::string, std::less<>> unsaved_;  // since they were saved
  double last_save_ = 0;
};

}  // namespace hearth
