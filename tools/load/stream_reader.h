// Reads the body of a streamed completion or chat completion of any OpenAI-compatible server. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"
#include "tools/http/event_parser.h"

namespace hearth {

struct StreamedReply {
  std::vector<double> text_times;  // when chunks with text came, as the caller's clock said
  std::optional<uint64_t> prompt_tokens, generated_tokens;  // as the server counted them
  bool complete = false;  // it ended as streams do; otherwise something is missing
  std::string error;      // what an event said that reports one

  // The server's count, or the number of chunks with text if it did not count.
  uint64_t tokens() const { return generated_tokens.value_or(text_times.size()); }
};

class StreamReader {
 public:
  // Takes bytes that came at `now`. An error means that this is no such stream, and is final.
  Status push(std::string_view bytes, double now, StreamedReply& reply);

 private:
  static Status take_event(const std::string& data, double now, StreamedReply& reply);

  EventParser parser_;
};

// What the body of a reply that reports an error says: one line of at most 200 bytes.
std::string error_text_of(std::string_view body);

}  // namespace hearth
