// Calls that begin with the function's name and continue with its arguments as a JSON object, with
// markers between: [TOOL_CALLS]f[ARGS]{...}, <|tool_call_begin|>f<|tool_sep|>{...} and the like.
#pragma once

#include <optional>
#include <string_view>

#include "engine/text/tool_calls/call_reader.h"
#include "engine/text/tool_calls/json_scanner.h"
#include "engine/text/tool_calls/marker_search.h"

namespace hearth {

struct NamedCallsShape {
  std::string_view open;                             // before each name
  std::string_view separator;                        // between name and arguments
  std::string_view close = {};                       // after the arguments; empty: nothing
  std::string_view list_open = {}, list_close = {};  // around all calls; empty: nothing
  // What stands before the separator is this word, and then the name follows, up to the line's end.
  std::string_view word_before_name = {};
  // The name in what stands where the name is. Null: all of it.
  std::string_view (*name_of)(std::string_view head) = nullptr;
};

class NamedCalls final : public CallReader {
 public:
  explicit NamedCalls(const NamedCallsShape& shape);
  void push(char byte, ReplySink& sink) override;
  void finish(ReplySink& sink) override;

 private:
  enum class Place {
    kText,
    kHead,       // in the name
    kNameLine,   // in the name, after word_before_name
    kBefore,     // before the arguments
    kArguments,  // in them
    kBroken,     // in arguments that are not JSON
    kAfter,      // after them, before the closing marker
  };
  void push_text(char byte, ReplySink& sink);
  void push_head(char byte, ReplySink& sink);
  void push_before(char byte, ReplySink& sink);
  void push_arguments(char byte, ReplySink& sink);
  void begin(std::string_view head, ReplySink& sink);
  void no_call(ReplySink& sink);

  const NamedCallsShape shape_;
  Place place_ = Place::kText;
  MarkerSearch text_, head_end_, call_end_;
  std::string head_;    // the name, as far as it has come
  std::string before_;  // what stands before the arguments
  std::string seen_;    // all bytes of a call that has not begun
  std::optional<JsonScanner> arguments_;
};

}  // namespace hearth
