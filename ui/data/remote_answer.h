// An answer that a server generates: sends the conversation to /v1/chat/completions and turns the
// stream into a reply, with the probabilities of its tokens. Never blocks. Call only from the
// window's thread.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "ui/data/chat_answer.h"
#include "ui/feeds/remote_calls.h"

namespace hearth {

// The body of the request for the reply of an exchange. The oldest exchanges are dropped, and
// counted in `left_out`, if the server's context would be too small for them, going by the numbers
// of tokens that it reported earlier.
nlohmann::json remote_chat_body(const Chat& chat, size_t exchange, uint32_t context,
                                uint32_t& left_out);

class RemoteAnswer final : public Answer {
 public:
  // REQUIRES: model.remote is not null.
  static std::unique_ptr<RemoteAnswer> start(const ChatModel& model, Chat& chat, size_t exchange);
  // Cancels the request unless it has ended.
  ~RemoteAnswer() override;

  bool poll(ChatReply& reply, const ChatModel* model) override;
  bool ended() const override { return ended_; }
  void stop(const ChatModel& model) override;
  RequestId request() const override { return 0; }  // the API does not tell
  double seconds() const override;

 private:
  using Clock = std::chrono::steady_clock;

  RemoteAnswer(std::uint64_t generation, std::shared_ptr<RemoteCall> call)
      : generation_(generation), call_(std::move(call)) {}
  void take_chunk(ChatReply& reply, const std::string& data);
  void add_text(ChatReply& reply, const nlohmann::json& choice);
  void end(ChatReply& reply);

  const std::uint64_t generation_;
  const std::shared_ptr<RemoteCall> call_;
  std::deque<std::string> events_;  // arrived and not read yet
  Clock::time_point asked_ = Clock::now(), first_ = {};
  bool reasons_ = false;  // the last text was reasoning
  bool stopped_ = false, ended_ = false;
};

}  // namespace hearth
