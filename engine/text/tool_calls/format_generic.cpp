// For models without a format of their own. They learn from a system message (tool_prompt.h) to
// write calls as Hermes does, because many models have seen that.
#include "engine/text/tool_calls/call_format.h"

namespace hearth {

const CallFormat& generic_format() {
  static const CallFormat format = [] {
    CallFormat made = hermes_format();
    made.name = "generic";
    made.fits = [](std::string_view) { return true; };
    return made;
  }();
  return format;
}

}  // namespace hearth
