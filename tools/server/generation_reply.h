// The requests to the engine on behalf of one client, and the reply: a stream of events, or one
// object in the end. Used by one connection's thread. Who lets go of it cancels what still runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/server/openai_reply.h"
#include "tools/server/openai_request.h"
#include "tools/server/served_model.h"

namespace hearth {

class GenerationReply {
 public:
  using Gone = std::function<bool()>;  // the client is; asked every few milliseconds
  using Write = std::function<bool(std::string_view)>;  // false: the client is gone

  // Turns the request into prompts and submits them, or says why not. `model` outlives the reply.
  static std::variant<std::unique_ptr<GenerationReply>, ApiError> begin(const ServedModel& model,
                                                                        ReplyHead head,
                                                                        const ApiRequest& request);
  ~GenerationReply();
  GenerationReply(const GenerationReply&) = delete;
  GenerationReply& operator=(const GenerationReply&) = delete;

  // The whole reply as text.
  std::variant<std::string, ApiError> collect(const Gone& gone);

  // For a stream: waits for the first token or the end, so that an error still has a status,
  std::optional<ApiError> wait_for_start(const Gone& gone);
  // then writes everything. False: the client is gone.
  bool write(const Write& write, const Gone& gone);

 private:
  struct Part {
    std::shared_ptr<TokenStream> stream;
    std::optional<GeneratedToken> first;  // taken by wait_for_start
    Choice choice;
    size_t offset = 0;  // characters of the tokens that were written
    // With stop strings: tokens that are not written yet, since their text is not; bytes of both.
    std::vector<GeneratedToken> held;
    size_t told = 0, shown = 0;
    bool opened = false, closed = false;
  };
  GenerationReply(const ServedModel& model, ReplyHead head, const ApiRequest& request);
  void wait_for_news();
  bool all_closed() const;
  std::vector<GenerationEnd> ends() const;
  bool is_text(const GeneratedToken& token) const;
  std::string take(size_t index, GeneratedToken token);
  std::string tell_held(size_t index, std::string text, bool begun);
  std::string close(size_t index);
  std::string take_all();

  const ServedModel& model_;
  const ReplyHead head_;
  const uint32_t n_;  // completions of each prompt; parts_ are prompt after prompt
  const bool stream_, include_usage_, logprobs_, ignore_end_, has_stops_;
  struct News;
  std::shared_ptr<News> news_;  // wakes this thread when any part has a token or has ended
  std::vector<Part> parts_;
};

}  // namespace hearth
