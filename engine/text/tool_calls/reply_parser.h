// Turns the text of a model's reply into content, reasoning and calls, while it is being written.
// The events do not depend on where the text is cut into pieces, apart from how many pieces a text
// comes in. For one reply and one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/reply_event.h"
#include "engine/text/tool_calls/reply_format.h"

namespace hearth {

class ReplyParser {
 public:
  struct Options {
    ReplyFormat format;
    // The tools that may be called; empty: calls are left as text. They must outlive the parser.
    std::span<const Tool> tools = {};
    bool begins_in_reasoning = false;  // see ends_in_reasoning()
    bool must_call = false;            // the reply can only be calls
  };
  explicit ReplyParser(const Options& options);

  // Any bytes, though a piece of whole characters makes events of whole characters.
  std::vector<ReplyEvent> push(std::string_view piece);
  // The reply has ended. Every call that has begun has an end then. `cut_off`: the model had not
  // ended it, so that a marker or call which has only just begun is no content.
  std::vector<ReplyEvent> finish(bool cut_off = false);

 private:
  void push_answer(std::string_view text);
  void finish_reasoning(bool cut_off);

  ReplySink sink_;
  const std::size_t shortest_dropped_;  // bytes of a marker that a limit cut
  std::optional<ReasoningSplitter> reasoning_;
  std::unique_ptr<CallReader> reader_;  // null: calls are left as text
};

}  // namespace hearth
