// Replies of Anthropic's Messages API: a message with a list of content blocks, or the events that
// build it up. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/server/reply_adapter.h"

namespace hearth {

class AnthropicReply : public ReplyAdapter {
 public:
  AnthropicReply(std::string id, std::string model);

 private:
  std::string opening() override;
  std::string piece(const ReplyPiece& piece) override;
  std::string closing() override;
  std::string failure(const ApiError& error) override;
  nlohmann::json object() override { return message_; }

  std::string open_block(ReplyPiece::Kind kind, const ReplyPiece& piece);
  std::string close_block();
  nlohmann::json& block() { return message_["content"].back(); }
  std::string block_event(const char* type, nlohmann::json fields);

  nlohmann::json message_;
  bool block_open_ = false;
  ReplyPiece::Kind block_kind_ = ReplyPiece::Kind::kText;
  std::string text_;  // of the open block: text, thinking or a call's arguments
};

}  // namespace hearth
