// Calls that are JSON objects with a name (call_object.h), one by one or in a list, after a marker:
// <tool_call>{"name": ...}</tool_call>, [TOOL_CALLS][{"name": ...}, ...] and the like.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/call_object.h"
#include "engine/text/tool_calls/call_reader.h"
#include "engine/text/tool_calls/marker_search.h"

namespace hearth {

struct JsonCallsShape {
  std::vector<std::string_view> opens;  // each may begin a call, or a list of them
  std::string_view close = {};          // ends what a marker began; empty: nothing does
  // A reply may also begin with the object itself, if it names one of the tools.
  bool bare = false;
};

class JsonCalls final : public CallReader {
 public:
  JsonCalls(JsonCallsShape shape, std::span<const Tool> tools);
  void push(char byte, ReplySink& sink) override;
  void finish(ReplySink& sink) override;

 private:
  enum class Place {
    kText,     // outside of calls
    kBetween,  // after a marker or a call: the next call or the closing marker
    kObject,   // in a call
    kBroken,   // in arguments that are not JSON
  };
  void push_text(char byte, ReplySink& sink);
  void push_between(char byte, ReplySink& sink);
  void push_object(char byte, ReplySink& sink);
  void leave(ReplySink& sink);

  const JsonCallsShape shape_;
  const std::span<const Tool> tools_;
  Place place_ = Place::kText;
  MarkerSearch opens_, closes_;
  std::optional<CallObject> object_;
  std::string gap_;     // the beginning of a marker between calls
  std::string opened_;  // what is content if no call follows
  bool at_start_ = true, is_bare_ = false, any_call_ = false;
};

}  // namespace hearth
