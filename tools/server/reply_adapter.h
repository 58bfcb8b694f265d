// A chat completion as another API shows it. GenerationReply produces chunks in the shape of
// OpenAI's chat completions; an adapter takes them apart and writes its own API's stream or object
// from them.
//
// One per reply, used by one thread. Pure: knows neither the engine nor sockets.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "engine/generation.h"
#include "tools/server/api_error.h"

namespace hearth {

// A piece of an answer.
struct ReplyPiece {
  enum class Kind {
    kText,
    kReasoning,
    kCall,       // begins a call of a tool, with `id` and `name`
    kArguments,  // more of the arguments of the last call, as JSON text
  };
  Kind kind = Kind::kText;
  std::string text = {};
  std::string id = {}, name = {};  // of a call
};

class ReplyAdapter {
 public:
  virtual ~ReplyAdapter() = default;

  // First, once.
  void start(uint32_t prompt_tokens) { prompt_tokens_ = prompt_tokens; }
  // A stream: the text for each chunk, then for the end, or for an error in place of it. A chunk
  // that holds an error ends the stream.
  std::string chunk(const nlohmann::json& chunk);
  std::string end(const GenerationEnd& end);
  // Instead of a stream: the whole object, from a whole chat completion. `deltas` has its message
  // in the order in which it was written; empty: the message has only one part.
  std::string whole(const nlohmann::json& completion, const GenerationEnd& end,
                    std::span<const nlohmann::json> deltas = {});

  virtual std::string_view stream_type() const { return "text/event-stream"; }

 protected:
  // What a stream begins with, what a piece adds, and what it ends with.
  virtual std::string opening() = 0;
  virtual std::string piece(const ReplyPiece& piece) = 0;
  virtual std::string closing() = 0;
  virtual std::string failure(const ApiError& error) = 0;
  // The whole reply. Called after closing().
  virtual nlohmann::json object() = 0;

  uint32_t prompt_tokens() const { return prompt_tokens_; }
  // For closing() and object().
  const GenerationEnd& ending() const { return end_; }
  const std::string& finish_reason() const { return finish_reason_; }  // OpenAI's word for it

 private:
  std::string open_once();
  std::string take(const nlohmann::json& choice, const nlohmann::json& delta);

  uint32_t prompt_tokens_ = 0;
  bool opened_ = false, failed_ = false;
  std::string finish_reason_;
  GenerationEnd end_;
};

}  // namespace hearth
