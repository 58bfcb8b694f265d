// Reads one call that is a JSON object with the function's name and its arguments:
// {"name": "f", "arguments": {...}}. "parameters" is read as "arguments", and the order does not
// matter. For one call and one thread.
#pragma once

#include <span>
#include <string>

#include "engine/text/tool_calls/json_scanner.h"
#include "engine/text/tool_calls/reply_sink.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

class CallObject {
 public:
  // `known`: the object is only a call if its name is that of one of these tools. Empty: any name.
  explicit CallObject(std::span<const Tool> known = {}) : known_(known) {}

  enum class State {
    kOpen,
    kDone,     // the call has ended
    kBroken,   // the call has begun, and its arguments are not JSON: what follows belongs to them
    kNotCall,  // no call has begun, and none can
  };
  State push(char byte, ReplySink& sink);
  // The bytes so far. Only of use in the state kNotCall, or before the call has begun.
  const std::string& text() const { return text_; }
  bool begun() const { return begun_; }

 private:
  enum class Member { kOther, kName, kArguments };
  Member member() const;
  void end_member(ReplySink& sink);

  std::span<const Tool> known_;
  JsonScanner scanner_;
  std::string text_, value_;
  std::string waiting_;  // arguments that came before the name
  bool in_value_ = false, is_text_ = false;
  bool begun_ = false, has_arguments_ = false, not_object_ = false, refused_ = false;
};

}  // namespace hearth
