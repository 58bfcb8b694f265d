// One of the dashboard's conversations, as plain data: questions and answers, token by token, with
// the alternatives at each token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "engine/sampling_defaults.h"

namespace hearth {

// A token that could have been chosen.
struct ChatAlternative {
  std::uint32_t id = 0;
  std::string text;  // readable: stray bytes as <E2>, control tokens by name
  float probability = 0;
};

struct ChatToken {
  std::uint32_t id = 0;
  // Whole characters. Empty for a control token, or if a later token completes the character.
  std::string text;
  float probability = 0;
  std::vector<ChatAlternative> alternatives;  // most likely first, including the chosen one
};

// How to find reasoning and calls in an answer. Saved with it, because the model that wrote it may
// not be the open one later. Without names, the text is all there is.
struct ChatReplyForm {
  std::string calls;                 // CallFormat::name
  std::string reasoning;             // the marker that it begins with
  bool begins_in_reasoning = false;  // the prompt ends with that marker
};

struct ChatReply {
  std::string text;  // its tokens' texts, and possibly an incomplete character
  std::vector<ChatToken> tokens;
  ChatReplyForm form;
  std::uint32_t kept_tokens = 0;  // leading tokens taken from an earlier answer, not generated
  // kNone: still being generated, or interrupted by a crash.
  FinishReason finish = FinishReason::kNone;
  std::string error;
  double first_token_seconds = 0;  // since the request was submitted
  double tokens_per_s = 0;         // between the first and the last token
  std::uint32_t prompt_tokens = 0, cached_tokens = 0;
  std::uint32_t left_out = 0;  // oldest messages dropped because the context was full

  std::uint32_t generated_tokens() const {
    return static_cast<std::uint32_t>(tokens.size()) - kept_tokens;
  }
  std::uint32_t context_tokens() const { return prompt_tokens + generated_tokens(); }
};

// A question and its answer.
struct ChatExchange {
  std::string question;
  ChatReply reply;
  // Changes when the question or the reply is replaced, but not while the reply grows. 0: not
  // assigned yet.
  std::uint64_t revision = 0;
  // Cached JSON of a finished exchange; empty if there is none.
  mutable std::string json;
};

struct ChatSampling {
  SamplingOptions options{
      .temperature = kHearthSampling.temperature, .min_p = kHearthSampling.min_p, .seed = 1};
  bool custom = false;           // chosen by the user; otherwise the model's defaults apply
  std::uint32_t max_tokens = 0;  // per answer; 0: until the model ends it
  bool new_seed = true;          // pick a new seed for each answer
};

struct Chat {
  std::string id;  // file name; starts with the time of creation
  std::string title;
  bool titled = false;  // by the user or from the first question
  bool open = true;     // shown in a tab
  std::string system;
  std::string draft;  // text typed but not sent
  ChatSampling sampling;
  std::vector<ChatExchange> exchanges;

  // Nothing was asked or typed yet.
  bool is_blank() const { return exchanges.empty() && draft.empty(); }
  std::string display_title() const { return title.empty() ? "New chat" : title; }
};

// Switches to a model's default options, except for the seed, unless the user chose others.
void use_defaults(ChatSampling& sampling, const SamplingOptions& defaults);

// The first few words of the question.
std::string title_from_question(std::string_view question);
// "Story (branch)", "Story (branch 2)".
std::string branch_title(std::string_view title);
// "42 tokens, 107 tokens/s, TTFT 35 ms, 12 of 64 prompt tokens from the prefix cache".
std::string describe(const ChatReply& reply);
// Why an answer ended early: "stopped", "cut off: ...". Empty if it ended normally.
std::string describe_end(const ChatReply& reply);

// The file format of a conversation, which `hearth chat --load` also reads.
std::string write_chat(const Chat& chat);
Result<Chat> read_chat(std::string_view text);

}  // namespace hearth
