#include "ui/data/chat_controller.h"

#include <iterator>
#include <utility>

#include "ui/data/remote_answer.h"

namespace hearth {
namespace {

constexpr double kSecondsBetweenSaves = 2;

void replace_reply(ChatExchange& exchange, ChatReply reply) {
  exchange.reply = std::move(reply);
  exchange.revision = next_revision();
  exchange.json.clear();
}

}  // namespace

void ChatController::update(const ChatModel* model, double now) {
  history_.load();
  const bool save_now = now - last_save_ >= kSecondsBetweenSaves || now < last_save_;
  if (save_now) last_save_ = now;
  for (auto at = answers_.begin(); at != answers_.end();) {
    Chat& chat = *history_.find(at->first);
    const bool news = at->second->poll(chat.exchanges.back().reply, model);
    const bool ended = at->second->ended();
    if (ended) {
      history_.save(chat);
    } else if (news) {
      mark_unsaved(chat);
    }
    at = ended ? answers_.erase(at) : std::next(at);
  }
  if (save_now) save_unsaved();
}

void ChatController::save_unsaved() {
  for (const std::string& id : unsaved_)
    if (const Chat* const chat = history_.find(id)) history_.save(*chat);
  unsaved_.clear();
}

Chat& ChatController::new_chat(const Chat* settings_from) {
  Chat chat;
  if (settings_from != nullptr) {
    chat.system = settings_from->system;
    chat.sampling = settings_from->sampling;
  }
  return history_.add(std::move(chat));
}

void ChatController::cancel_answer(Chat& chat) {
  const auto running = answers_.find(chat.id);
  if (running == answers_.end()) return;
  // Destroying the stream cancels the request.
  answers_.erase(running);
  ChatReply& reply = chat.exchanges.back().reply;
  if (reply.finish == FinishReason::kNone) reply.finish = FinishReason::kCancelled;
}

Result<std::unique_ptr<Answer>> ChatController::begin(Chat& chat, const ChatModel& model,
                                                      const Answer* parent) {
  const size_t last = chat.exchanges.size() - 1;
  if (model.remote != nullptr)
    return std::unique_ptr<Answer>(RemoteAnswer::start(model, chat, last));
  // A server's answer has no blocks to share.
  const auto* const local_parent = dynamic_cast<const ChatAnswer*>(parent);
  HEARTH_ASSIGN(auto local, ChatAnswer::start(model, chat, last, local_parent));
  return std::unique_ptr<Answer>(std::move(local));
}

void ChatController::start(Chat& chat, const ChatModel& model, const Answer* parent) {
  use_defaults(chat.sampling, model.default_sampling);
  ChatReply& reply = chat.exchanges.back().reply;
  auto answer = begin(chat, model, parent);
  if (answer.ok()) {
    answers_[chat.id] = std::move(answer).value();
    if (chat.sampling.new_seed) ++chat.sampling.options.seed;
  } else {
    reply.finish = FinishReason::kError;
    reply.error = answer.error().message;
  }
  history_.save(chat);
}

void ChatController::ask(Chat& chat, std::string question, const ChatModel& model) {
  cancel_answer(chat);
  if (!chat.titled) {
    chat.title = title_from_question(question);
    chat.titled = true;
  }
  chat.exchanges.push_back(
      {.question = std::move(question), .reply = {}, .revision = next_revision(), .json = {}});
  start(chat, model);
}

void ChatController::edit_question(Chat& chat, size_t exchange, std::string question,
                                   const ChatModel& model) {
  cancel_answer(chat);
  chat.exchanges.resize(exchange);
  ask(chat, std::move(question), model);
}

void ChatController::regenerate(Chat& chat, const ChatModel& model) {
  if (chat.exchanges.empty()) return;
  cancel_answer(chat);
  replace_reply(chat.exchanges.back(), {});
  start(chat, model);
}

bool ChatController::can_continue(const Chat& chat) const {
  if (chat.exchanges.empty() || answering(chat)) return false;
  const ChatReply& reply = chat.exchanges.back().reply;
  return reply.finish != FinishReason::kStop && !reply.tokens.empty();
}

void ChatController::continue_answer(Chat& chat, const ChatModel& model) {
  if (!can_continue(chat) || !check_same_model(chat, chat.exchanges.size() - 1, model)) return;
  ChatReply reply;
  reply.tokens = chat.exchanges.back().reply.tokens;
  rebuild_text(reply, model);
  replace_reply(chat.exchanges.back(), std::move(reply));
  start(chat, model);
}

bool ChatController::check_same_model(Chat& chat, size_t exchange, const ChatModel& model) {
  ChatReply& reply = chat.exchanges[exchange].reply;
  if (model.remote != nullptr) {
    reply.error = "A server's answer can be regenerated, but not continued.";
    return false;
  }
  if (decodes_equally(reply.tokens, model)) return true;
  reply.error =
      "This answer came from a different model. It can be regenerated, but not continued.";
  return false;
}

Chat* ChatController::branch(Chat& chat, size_t exchange, size_t token,
                             const ChatAlternative& alternative, const ChatModel& model) {
  if (!check_same_model(chat, exchange, model)) return nullptr;
  Chat copy = chat;
  copy.title = branch_title(chat.display_title());
  copy.titled = true;
  copy.open = true;
  copy.exchanges.resize(exchange + 1);
  const ChatReply& old = chat.exchanges[exchange].reply;
  ChatReply reply;
  reply.left_out = old.left_out;
  reply.tokens.assign(old.tokens.begin(), old.tokens.begin() + static_cast<long>(token));
  reply.tokens.push_back({.id = alternative.id,
                          .text = {},
                          .probability = alternative.probability,
                          .alternatives = old.tokens[token].alternatives});
  reply.kept_tokens = static_cast<std::uint32_t>(reply.tokens.size());
  rebuild_text(reply, model);
  const bool ends = model.tokenizer->ends_generation(alternative.id);
  if (ends) {
    reply.finish = FinishReason::kStop;
    reply.prompt_tokens = old.prompt_tokens - old.kept_tokens + reply.kept_tokens;
  }
  copy.exchanges.back().reply = std::move(reply);
  copy.exchanges.back().json.clear();

  // Only the last reply of a conversation can be in progress.
  const auto running = answers_.find(chat.id);
  const bool shares = running != answers_.end() && exchange + 1 == chat.exchanges.size();
  Chat& added = history_.add(std::move(copy));
  if (!ends) start(added, model, shares ? running->second.get() : nullptr);
  return &added;
}

void ChatController::stop(const Chat& chat, const ChatModel& model) {
  if (const auto running = answers_.find(chat.id); running != answers_.end())
    running->second->stop(model);
}

void ChatController::rename(Chat& chat, std::string title) {
  chat.title = std::move(title);
  chat.titled = !chat.title.empty();
  history_.save(chat);
}

void ChatController::close(Chat& chat) {
  cancel_answer(chat);
  if (chat.is_blank()) {
    history_.remove(chat.id);
    history_.forget_removed();
    return;
  }
  chat.open = false;
  history_.save(chat);
}

void ChatController::remove(const Chat& chat) {
  if (const auto running = answers_.find(chat.id); running != answers_.end()) {
    answers_.erase(running);
    Chat& changed = *history_.find(chat.id);
    changed.exchanges.back().reply.finish = FinishReason::kCancelled;
  }
  history_.remove(chat.id);
}

RequestId ChatController::request(const Chat& chat) const {
  const auto running = answers_.find(chat.id);
  return running == answers_.end() ? 0 : running->second->request();
}

double ChatController::answer_seconds(const Chat& chat) const {
  const auto running = answers_.find(chat.id);
  return running == answers_.end() ? 0 : running->second->seconds();
}

void ChatController::save_all() {
  for (const auto& [id, answer] : answers_) unsaved_.insert(id);
  save_unsaved();
}

}  // namespace hearth
