// The operations on conversations: ask, stop, regenerate, edit a question, branch at a token. Owns
// the answers being generated, one per conversation, and saves everything as it arrives. Call only
// from the window's thread.
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

  // Call once per frame to collect generated tokens. `model` is null if there is no model that can
  // answer; `now` is in seconds on any steady clock.
  void update(const ChatModel* model, double now);

  // Starts a conversation, with the system prompt and sampling of `settings_from` unless it is
  // null.
  Chat& new_chat(const Chat* settings_from);
  // Each of these cancels an answer in progress and discards what follows in the conversation.
  // Errors end up in the reply.
  void ask(Chat& chat, std::string question, const ChatModel& model);
  void edit_question(Chat& chat, size_t exchange, std::string question, const ChatModel& model);
  void regenerate(Chat& chat, const ChatModel& model);
  // Continues the last reply where it was stopped or cut off. A reply from a different model or a
  // server stays as it is and gets an error; branch() does the same.
  void continue_answer(Chat& chat, const ChatModel& model);
  bool can_continue(const Chat& chat) const;
  // Creates a conversation that is the same up to this token, has the alternative in its place, and
  // continues from there. If the reply is still being generated, both share its KV blocks. Returns
  // null on failure.
  Chat* branch(Chat& chat, size_t exchange, size_t token, const ChatAlternative& alternative,
               const ChatModel& model);
  void stop(const Chat& chat, const ChatModel& model);
  void rename(Chat& chat, std::string title);
  // Call after changing the draft, system prompt or sampling; the chat is saved within seconds.
  void mark_unsaved(const Chat& chat) { unsaved_.insert(chat.id); }
  // Closes the chat's tab. A blank chat is deleted.
  void close(Chat& chat);
  void remove(const Chat& chat);

  bool answering(const Chat& chat) const { return answers_.contains(chat.id); }
  // The id and age in seconds of the open request; 0 if there is none.
  RequestId request(const Chat& chat) const;
  double answer_seconds(const Chat& chat) const;
  size_t answers() const { return answers_.size(); }
  // Queues all unsaved changes for writing; the destructor waits until they are on disk.
  void save_all();

 private:
  void save_unsaved();
  void start(Chat& chat, const ChatModel& model, const Answer* parent = nullptr);
  static Result<std::unique_ptr<Answer>> begin(Chat& chat, const ChatModel& model,
                                               const Answer* parent);
  void cancel_answer(Chat& chat);
  // Whether the reply came from this model. If not, sets the reply's error.
  static bool check_same_model(Chat& chat, size_t exchange, const ChatModel& model);

  ChatHistory history_;
  std::map<std::string, std::unique_ptr<Answer>, std::less<>> answers_;  // by chat id
  std::set<std::string, std::less<>> unsaved_;                           // chat ids
  double last_save_ = 0;
};

}  // namespace hearth
