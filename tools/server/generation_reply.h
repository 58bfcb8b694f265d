// One client's requests to the engine, and the reply to it: a stream of events, or one object at
// the end. Used by one connection's thread. Destroying it cancels what still runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/server/compress_request.h"
#include "tools/server/generation_requests.h"
#include "tools/server/openai_reply.h"
#include "tools/server/openai_request.h"
#include "tools/server/reply_adapter.h"
#include "tools/server/reply_part.h"
#include "tools/server/request_errors.h"
#include "tools/server/served_model.h"

namespace hearth {

class GenerationReply {
 public:
  // Whether the client is gone; asked every few milliseconds.
  using Gone = std::function<bool()>;
  // Sends a part of a stream; false: the client is gone.
  using Write = std::function<bool(std::string_view)>;

  // Turns the request into prompts and submits them, or says why not. May take seconds. `adapter`
  // writes the reply for another API; null: OpenAI's. REQUIRES: `model` outlives the reply; with an
  // adapter the request has one prompt and one completion.
  static std::variant<std::unique_ptr<GenerationReply>, ApiError> begin(
      const ServedModel& model, ReplyHead head, const ApiRequest& request,
      const RequestUntil& until, std::unique_ptr<ReplyAdapter> adapter = nullptr);
  GenerationReply(const GenerationReply&) = delete;
  GenerationReply& operator=(const GenerationReply&) = delete;

  // The client asked for a stream, not for one object.
  bool is_stream() const { return options_.stream; }
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
  GenerationReply(const ServedModel& model, ReplyHead head, const ApiRequest& request);
  // Empty: all was submitted. `request` is as it was after compression.
  std::optional<ApiError> submit(const ApiRequest& request, GenerationRequests made);
  // A chunk as text of the stream. Hides the function of the same name, which is for OpenAI's API.
  std::string to_event(nlohmann::json chunk) {
    if (adapter_) return adapter_->chunk(chunk);
    // If the last chunk has the usage, all others say that they have not.
    if (include_usage_ && chunk.contains("choices")) chunk.emplace("usage", nullptr);
    return hearth::to_event(chunk);
  }
  void wait_for_tokens();
  bool all_closed() const;
  std::vector<GenerationEnd> ends() const;
  std::string take_all();

  const ReplyOptions options_;
  const uint32_t n_;  // completions per prompt
  const bool include_usage_;
  std::optional<CompressionReport> compression_;
  std::unique_ptr<ReplyAdapter> adapter_;  // null: OpenAI's API
  struct Wakeup;
  std::shared_ptr<Wakeup> wakeup_;  // wakes this thread when any part has a token or has ended
  std::vector<ReplyPart> parts_;    // the first prompt's completions, the second prompt's, ...
};

}  // namespace hearth
