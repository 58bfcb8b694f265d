// A conversation of the dashboard: plain data. What was asked and answered, token by token, with
// what else could have been said there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/generation.h"

namespace hearth {

// A token that could stand at a place.
struct ChatAlternative {
  std::uint32_t id = 0;
  std::string text;  // for people: bytes that are no character as <E2>, control tokens by name
  float probability = 0;
};

struct ChatToken {
  std::uint32_t id = 0;
  std::string text;  // whole characters; empty: the next one completes it, or it is no text
  float probability = 0;
  std::vector<ChatAlternative> alternatives;  // likeliest first, the chosen one among them
};

struct ChatReply {
  std::string text;  // its tokens' in a row, and at most a broken character after them
  std::vector<ChatToken> tokens;
  std::uint32_t kept_tokens = 0;  // leading ones that were there before it was generated
  // kNone: still being generated, or what a program that crashed has left.
  FinishReason finish = FinishReason::kNone;
  std::string error;
  double first_token_seconds = 0;  // after it was asked for
  double tokens_per_s = 0;         // from the first to the last
  std::uint32_t prompt_tokens = 0, cached_tokens = 0;
  std::uint32_t left_out = 0;  // messages that the context had no room for

  std::uint32_t generated_tokens() const {
    return static_cast<std::uint32_t>(tokens.size()) - kept_tokens;
  }
  std::uint32_t context_tokens() const { return prompt_tokens + generated_tokens(); }
};

// A question and its answer.
struct ChatExchange {
  std::string question;
  ChatReply reply;
  // Another number: another question or reply, not only more of it. 0: not given yet.
  std::uint64_t revision = 0;
  // As it is written, once it has ended; empty: not known.
  mutable std::string json;
};

struct ChatSampling {
  SamplingOptions options{.temperature = 0.7f, .min_p = 0.05f, .seed = 1};
  std::uint32_t max_tokens = 0;  // of an answer; 0: until the model ends
  bool new_seed = true;          // for each answer
};

struct Chat {
  std::string id;  // its file's name; begins with the time it was begun
  std::string title;
  bool titled = false;  // by hand, or by its first question
  bool open = true;     // has a tab
  std::string system;
  std::string draft;  // that is being typed
  ChatSampling sampling;
  std::vector<ChatExchange> exchanges;

  // Nothing was said or typed.
  bool is_blank() const { return exchanges.empty() && draft.empty(); }
  std::string display_title() const { return title.empty() ? "New chat" : title; }
};

// A few words of the question.
std::string title_from_question(std::string_view question);
// "Story (branch)", "Story (branch 2)".
std::string branch_title(std::string_view title);
// "42 tokens, 107 tokens/s, first after 35 ms, 12 of 64 prompt tokens from the cache".
std::string describe(const ChatReply& reply);
// Why it ended, where that is not obvious: "stopped", "cut off"; else empty.
std::string describe_end(const ChatReply& reply);

// The file of a conversation. `hearth chat --load` reads it as well.
std::string write_chat(const Chat& chat);
Result<Chat> read_chat(std::string_view text);

}  // namespace hearth
