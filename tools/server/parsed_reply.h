// A chat completion that is read for reasoning and calls: the message at its end, and the deltas of
// a stream in OpenAI's form. Used by one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/reply_parser.h"

namespace hearth {

class ParsedReply {
 public:
  struct Options {
    ReplyParser::Options parser;
    bool parallel = true;  // false: calls after the first are left out
    uint64_t id_seed = 0;  // calls get ids that are random, but follow from it
  };
  explicit ParsedReply(const Options& options);

  // Reads more of the model's text, and returns what it adds to a stream: the first delta of a call
  // has its index, id, type, name and no arguments, the following ones pieces of them.
  std::vector<nlohmann::json> push(std::string_view text);
  // `cut_off`: by a limit, not by the model.
  std::vector<nlohmann::json> finish(bool cut_off = false);

  // Everything so far as a message: "content" is null if there is none besides calls.
  nlohmann::json message() const;
  bool has_calls() const { return !calls_.empty(); }

 private:
  struct Call {
    std::string id, name, arguments, warning;
  };
  std::vector<nlohmann::json> take(const std::vector<ReplyEvent>& events);
  nlohmann::json take_one(const ReplyEvent& event);

  ReplyParser parser_;
  const bool parallel_;
  const uint64_t id_seed_;
  std::string content_, reasoning_;
  std::vector<Call> calls_;
};

}  // namespace hearth
