// Replies of OpenAI's Responses API: an object with a list of output items, or the events that
// build it up. Pure except for the store.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/server/api/response_store.h"
#include "tools/server/reply_adapter.h"

namespace hearth {

class ResponsesReply : public ReplyAdapter {
 public:
  struct Head {
    std::string id;  // "resp_..."
    std::string model;
    int64_t created = 0;
    nlohmann::json echo;       // ResponsesRequest's
    std::string conversation;  // before this response, as a JSON list; only needed for the store
  };
  // `store`: where the response is kept once it is complete; null: nowhere. It must outlive this.
  ResponsesReply(Head head, ResponseStore* store);

 private:
  std::string opening() override;
  std::string piece(const ReplyPiece& piece) override;
  std::string closing() override;
  std::string failure(const ApiError& error) override;
  nlohmann::json object() override { return response_; }

  std::string event(const char* type, nlohmann::json fields);
  std::string open_item(ReplyPiece::Kind kind, const ReplyPiece& piece);
  std::string close_item(const char* status);
  nlohmann::json& item() { return response_["output"].back(); }
  nlohmann::json place(bool with_part);  // where an event belongs
  void keep();

  std::string conversation_;
  ResponseStore* store_;
  nlohmann::json response_;
  uint64_t sequence_ = 0;  // of events
  bool item_open_ = false;
  ReplyPiece::Kind item_kind_ = ReplyPiece::Kind::kText;
  std::string text_;  // of the open item: text, reasoning or arguments
};

}  // namespace hearth
