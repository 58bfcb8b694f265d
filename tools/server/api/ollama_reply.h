// Replies of Ollama's API: an object, or a stream of them, one per line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/server/api/ollama_request.h"
#include "tools/server/reply_adapter.h"

namespace hearth {

class OllamaReply : public ReplyAdapter {
 public:
  OllamaReply(OllamaCall call, std::string model) : call_(call), model_(std::move(model)) {}

  std::string_view stream_type() const override { return "application/x-ndjson"; }

  // The reply to a request that only loads the model.
  static nlohmann::json loaded(OllamaCall call, const std::string& model);

 private:
  std::string opening() override { return {}; }
  std::string piece(const ReplyPiece& piece) override;
  std::string closing() override;
  std::string failure(const ApiError& error) override;
  nlohmann::json object() override;

  nlohmann::json part(const std::string& text, const std::string& thinking) const;
  nlohmann::json last(const std::string& text, const std::string& thinking) const;
  std::string close_call();

  const OllamaCall call_;
  const std::string model_;
  std::string text_, thinking_;
  nlohmann::json calls_ = nlohmann::json::array();  // complete ones
  bool call_open_ = false;
  std::string call_name_, arguments_;  // of the open call
};

// The time now: "2026-05-01T12:00:00.000000000Z".
std::string ollama_time();

}  // namespace hearth
