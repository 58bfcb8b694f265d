#include "tools/server/reply_part.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "tools/server/request_errors.h"

namespace hearth {
namespace {

// The reply is not whole.
bool is_cut_off(const GenerationEnd& end) {
  return end.reason == FinishReason::kLength || end.reason == FinishReason::kTimeLimit;
}

}  // namespace

ReplyPart::ReplyPart(const ReplyOptions& options, size_t index, TokenStream stream,
                     EchoedPrompt prompt, std::unique_ptr<ParsedReply> parsed)
    : options_(options),
      index_(index),
      stream_(std::move(stream)),
      prompt_(std::move(prompt)),
      parsed_(std::move(parsed)) {}

bool ReplyPart::wait_for_start(std::chrono::nanoseconds patience) {
  first_ = stream_.next(patience);
  return first_ || stream_.ended();
}

std::optional<ApiError> ReplyPart::failed_start() const {
  if (first_ || stream_.end().reason != FinishReason::kError) return std::nullopt;
  return generation_error(stream_.end(), options_.grammar_field);
}

void ReplyPart::take_new(Chunks& chunks) {
  if (closed_) return;
  std::optional<GeneratedToken> token = std::exchange(first_, std::nullopt);
  while (token || (token = stream_.next(std::chrono::nanoseconds(0)))) {
    take(std::move(*token), chunks);
    token.reset();
  }
  if (stream_.ended()) close(chunks);
}

// Every token is text but the one that ends it.
bool ReplyPart::is_text(const GeneratedToken& token) const {
  return options_.ignore_end || !options_.model.tokenizer.ends_generation(token.id);
}

size_t ReplyPart::shown_bytes(TokenId id) const {
  const bool shown = std::ranges::binary_search(options_.shown_tokens, id);
  return options_.model.tokenizer.piece(id, shown).size();
}

// What comes before the first token, in a stream: the role, or the prompt.
void ReplyPart::open(Chunks& chunks) {
  if (std::exchange(opened_, true)) return;
  if (options_.head.kind == ApiKind::kChat) {
    chunks.push_back(first_chunk(options_.head, index_));
  } else if (options_.echo) {
    const Tokenizer& tokenizer = options_.model.tokenizer;
    const Echo echo =
        make_echo(std::move(prompt_.text), prompt_.ids, stream_.prompt_logprobs(), tokenizer);
    chunks.push_back(echo_chunk(options_.head, index_, echo, tokenizer, offset_));
  }
}

void ReplyPart::take(GeneratedToken token, Chunks& chunks) {
  const bool counts = options_.logprobs && is_text(token);
  if (!options_.stream) {
    choice_.text += token.text;
    if (counts) choice_.tokens.push_back(std::move(token));
    return;
  }
  open(chunks);
  if (counts && options_.has_stops) {
    std::string shown = std::exchange(token.text, std::string());
    held_.push_back(std::move(token));
    return add_held(std::move(shown), false, chunks);
  }
  written_bytes_ += token.text.size();
  // A token of half a character has no text yet; only its logprob can be sent.
  if (counts || !token.text.empty()) add_token(token, counts, chunks);
}

// A token's text in a stream, with its log-probabilities if they are wanted.
void ReplyPart::add_token(const GeneratedToken& token, bool logprobs, Chunks& chunks) {
  const Tokenizer& tokenizer = options_.model.tokenizer;
  if (parsed_ == nullptr) {
    chunks.push_back(logprobs ? token_chunk(options_.head, index_, token, tokenizer, offset_)
                              : token_chunk(options_.head, index_, token));
    return;
  }
  Chunks deltas = parsed_->push(token.text);
  if (logprobs && deltas.empty()) deltas.push_back(nlohmann::json::object());
  std::span<const GeneratedToken> tokens(&token, logprobs ? 1 : 0);
  for (nlohmann::json& delta : deltas) {
    chunks.push_back(delta_chunk(options_.head, index_, std::move(delta), tokens, tokenizer));
    tokens = {};
  }
}

// Writes `text`, and those of the held tokens whose text has been written: all of it, or with
// `begun` at least its first byte.
void ReplyPart::add_held(std::string text, bool begun, Chunks& chunks) {
  written_bytes_ += text.size();
  auto token = held_.begin();
  for (; token != held_.end(); ++token) {
    const size_t end = token_bytes_ + shown_bytes(token->id);
    if (begun ? token_bytes_ >= written_bytes_ : end > written_bytes_) break;
    token_bytes_ = end;
    token->text = std::exchange(text, std::string());
    add_token(*token, true, chunks);
  }
  held_.erase(held_.begin(), token);
  if (!text.empty()) add_token({.text = std::move(text)}, false, chunks);
}

void ReplyPart::close(Chunks& chunks) {
  closed_ = true;
  choice_.end = stream_.end();
  choice_.text += choice_.end.text;
  if (!options_.stream) return close_whole();
  if (choice_.end.reason == FinishReason::kError) {
    chunks.push_back(error_json(generation_error(choice_.end, options_.grammar_field)));
    return;
  }
  // A choice that ended before its first token needs a role, too.
  open(chunks);
  // Of the tokens still held, those that begin before the stop string are part of the text; without
  // a stop string all are.
  written_bytes_ = choice_.end.reason == FinishReason::kStop
                       ? written_bytes_ + choice_.end.text.size()
                       : std::numeric_limits<size_t>::max();
  add_held({}, true, chunks);
  if (parsed_ == nullptr) {
    chunks.push_back(last_chunk(options_.head, index_, choice_.end));
    return;
  }
  add_token({.text = std::exchange(choice_.end.text, {})}, false, chunks);
  for (nlohmann::json& delta : parsed_->finish(is_cut_off(choice_.end)))
    chunks.push_back(
        delta_chunk(options_.head, index_, std::move(delta), {}, options_.model.tokenizer));
  chunks.push_back(last_chunk(options_.head, index_, choice_.end, parsed_->has_calls()));
}

void ReplyPart::close_whole() {
  if (options_.echo)
    choice_.echo = make_echo(std::move(prompt_.text), prompt_.ids, stream_.prompt_logprobs(),
                             options_.model.tokenizer);
  if (options_.has_stops && choice_.end.reason == FinishReason::kStop) drop_beyond_text();
  if (parsed_ == nullptr) return;
  deltas_ = parsed_->push(choice_.text);
  for (nlohmann::json& delta : parsed_->finish(is_cut_off(choice_.end)))
    deltas_.push_back(std::move(delta));
  choice_.message = parsed_->message();
  choice_.has_calls = parsed_->has_calls();
}

// Drops the tokens of a stop string, which are not part of the text.
void ReplyPart::drop_beyond_text() {
  size_t bytes = 0, kept = 0;
  for (; kept < choice_.tokens.size() && bytes < choice_.text.size(); ++kept)
    bytes += shown_bytes(choice_.tokens[kept].id);
  choice_.tokens.resize(kept);
}

}  // namespace hearth
