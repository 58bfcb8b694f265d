// One completion of a reply: takes its tokens as they come, and makes of them the chunks of a
// stream in OpenAI's shape, or what a whole reply says of it. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/token_stream.h"
#include "tools/server/openai_reply.h"
#include "tools/server/parsed_reply.h"
#include "tools/server/served_model.h"

namespace hearth {

// What all parts of a reply have in common.
struct ReplyOptions {
  const ServedModel& model;
  const ReplyHead head;
  const bool stream, logprobs, ignore_end, has_stops, echo;
  const std::string grammar_field;  // that asked for a grammar; empty: none did
  const std::vector<TokenId>
      shown_tokens;  // control tokens whose text is part of the reply, sorted
};

class ReplyPart {
 public:
  using Chunks = std::vector<nlohmann::json>;

  // With `echo`: the prompt, as text and, with log-probabilities, as tokens.
  struct EchoedPrompt {
    std::string text;
    std::vector<TokenId> ids;
  };
  // `parsed` reads the text for reasoning and calls; null: the text is the reply. `options`
  // outlives the part.
  ReplyPart(const ReplyOptions& options, size_t index, TokenStream stream, EchoedPrompt prompt,
            std::unique_ptr<ParsedReply> parsed);

  // Waits for the first token or the end. False: neither has come yet.
  bool wait_for_start(std::chrono::nanoseconds patience);
  // If it ended with an error before its first token: that error.
  std::optional<ApiError> failed_start() const;

  // Takes the tokens that have come, and appends what they add to a stream.
  void take_new(Chunks& chunks);
  // The end has been taken.
  bool is_closed() const { return closed_; }

  // REQUIRES, of all three: is_closed().
  const GenerationEnd& end() const { return choice_.end; }
  Choice take_choice() { return std::move(choice_); }
  // Of a parsed reply that is no stream: the message in the order in which it was written.
  const Chunks& deltas() const { return deltas_; }

 private:
  bool is_text(const GeneratedToken& token) const;
  size_t shown_bytes(TokenId id) const;
  void open(Chunks& chunks);
  void take(GeneratedToken token, Chunks& chunks);
  void add_token(const GeneratedToken& token, bool logprobs, Chunks& chunks);
  void add_held(std::string text, bool begun, Chunks& chunks);
  void close(Chunks& chunks);
  void close_whole();
  void drop_beyond_text();

  const ReplyOptions& options_;
  const size_t index_;
  TokenStream stream_;
  EchoedPrompt prompt_;
  std::unique_ptr<ParsedReply> parsed_;
  std::optional<GeneratedToken> first_;  // taken by wait_for_start()
  Choice choice_;
  size_t offset_ = 0;  // characters of the tokens that were written
  // With stop strings and logprobs, a token is written once all of its text has been.
  std::vector<GeneratedToken> held_;
  size_t written_bytes_ = 0;  // of text
  size_t token_bytes_ = 0;    // of the tokens that were written
  bool opened_ = false, closed_ = false;
  Chunks deltas_;
};

}  // namespace hearth
