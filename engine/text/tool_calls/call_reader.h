// Reads the calls in a reply, in one model family's format. Bytes come one at a time, so the events
// cannot depend on how the reply was cut into pieces. For one reply and one thread.
//
// A reader never fails: text that only looked like a call becomes content, and arguments that are
// not JSON are passed on as they are, with a warning at the end of the call.
#pragma once

#include "engine/text/tool_calls/reply_sink.h"

namespace hearth {

class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual void push(char byte, ReplySink& sink) = 0;
  // The reply has ended: ends an open call, and passes on what was held back.
  virtual void finish(ReplySink& sink) = 0;
};

}  // namespace hearth
