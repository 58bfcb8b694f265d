// One client's requests to the engine, and the reply to it: a stream of events, or one object at
// the end. Used by one connection's thread. Destroying it cancels what still runs.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/server/compress_request.h"
#include "tools/server/openai_reply.h"
#include "tools/server/openai_request.h"
#include "tools/server/parsed_reply.h"
#include "tools/server/reply_adapter.h"
#include "tools/server/served_model.h"

namespace hearth {

inline const ApiError kClientGone{
    .status = 499, .message = "the client is gone", .type = "server_error"};
inline const ApiError kTimeIsUp{
    .status = 503,
    .message = "the request's time limit passed before its prompt was ready",
    .type = "server_error",
    .code = "time_limit"};

// Why the engine took no request.
ApiError to_api_error(const Error& error);
// The same for an error of Engine::submit(), with when to try again.
ApiError to_api_error(const Error& error, const Engine& engine);

class GenerationReply {
 public:
  // Whether the client is gone; asked every few milliseconds.
  using Gone = std::function<bool()>;
  // Sends a part of a stream; false: the client is gone.
  using Write = std::function<bool(std::string_view)>;

  using Clock = std::chrono::steady_clock;
  // When to give up.
  struct Until {
    Clock::time_point deadline = Clock::time_point::max();  // of the whole request
    // Any thread may set it to make begin() fail soon. May be null.
    const std::atomic<bool>* cancelled = nullptr;
  };
  // Turns the request into prompts and submits them, or says why not. May take seconds. `adapter`
  // writes the reply for another API; null: OpenAI's. REQUIRES: `model` outlives the reply; with an
  // adapter the request has one prompt and one completion.
  static std::variant<std::unique_ptr<GenerationReply>, ApiError> begin(
      const ServedModel& model, ReplyHead head, const ApiRequest& request, const Until& until,
      std::unique_ptr<ReplyAdapter> adapter = nullptr);
  GenerationReply(const GenerationReply&) = delete;
  GenerationReply& operator=(const GenerationReply&) = delete;

  // The client asked for a stream, not for one object.
  bool is_stream() const { return stream_; }
  // The content type of the stream.
  std::string_view stream_type() const {
    return adapter_ ? adapter_->stream_type() : std::string_view("text/event-stream");
  }

  // Waits for the whole reply, as text.
  std::variant<std::string, ApiError> collect(const Gone& gone);

  // For a stream: waits for the first token or the end, so that an error still has a status of its
  // own,
  std::optional<ApiError> wait_for_start(const Gone& gone);
  // then writes everything. False: the client is gone.
  bool write(const Write& write, const Gone& gone);
  // What tells the client of a stream that it ends early.
  std::string error_event(const ApiError& error) { return to_event(error_json(error)); }

 private:
  struct Part {
    TokenStream stream;
    std::string echo_text;                // with `echo`: the prompt
    std::vector<TokenId> echo_prompt;     // with `echo` and logprobs: its tokens
    std::optional<GeneratedToken> first;  // taken by wait_for_start()
    Choice choice;
    size_t offset = 0;  // characters of the tokens that were written
    // With stop strings and logprobs, a token is written once all of its text has been.
    std::vector<GeneratedToken> held;
    size_t written_bytes = 0;  // of text
    size_t token_bytes = 0;    // of the tokens that were written
    bool opened = false, closed = false;
    std::unique_ptr<ParsedReply> parsed = nullptr;  // null: the text is the reply
    std::vector<nlohmann::json> deltas = {};        // of a parsed reply that is not a stream
  };
  GenerationReply(const ServedModel& model, ReplyHead head, const ApiRequest& request);
  // A chunk as text of the stream. Hides the function of the same name, which is for OpenAI's API.
  std::string to_event(nlohmann::json chunk) {
    if (adapter_) return adapter_->chunk(chunk);
    // If the last chunk has the usage, all others say that they have not.
    if (include_usage_ && chunk.contains("choices")) chunk.emplace("usage", nullptr);
    return hearth::to_event(chunk);
  }
  ApiError submit_error(const Error& error) const;
  ApiError generation_error(const GenerationEnd& end) const;
  void wait_for_tokens();
  bool all_closed() const;
  std::vector<GenerationEnd> ends() const;
  bool is_parsed() const;
  bool is_text(const GeneratedToken& token) const;
  std::string open(size_t index);
  std::string take(size_t index, GeneratedToken token);
  std::string token_events(size_t index, const GeneratedToken& token, bool logprobs);
  size_t shown_bytes(TokenId id) const;
  void drop_beyond(Choice& choice) const;
  std::string write_held(size_t index, std::string text, bool begun);
  std::string close(size_t index);
  std::string take_all();

  const ServedModel& model_;
  const ReplyHead head_;
  const uint32_t n_;  // completions per prompt
  const bool stream_, include_usage_, logprobs_, ignore_end_, has_stops_, echo_;
  const std::string grammar_field_;          // that asked for a grammar; empty: none did
  const std::vector<Tool> tools_;            // those that may be called
  const std::vector<TokenId> shown_tokens_;  // control tokens whose text is part of the reply
  std::optional<CompressionReport> compression_;
  std::unique_ptr<ReplyAdapter> adapter_;  // null: OpenAI's API
  struct Wakeup;
  std::shared_ptr<Wakeup> wakeup_;  // wakes this thread when any part has a token or has ended
  std::vector<Part> parts_;         // the first prompt's completions, the second prompt's, ...
};

}  // namespace hearth
