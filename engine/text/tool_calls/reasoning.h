// Reasoning that models write before their answer, between a pair of markers.
#pragma once

#include <string>
#include <string_view>

#include "engine/text/tool_calls/marker_search.h"
#include "engine/text/tool_calls/reply_sink.h"

namespace hearth {

struct ReasoningMarkers {
  std::string_view open, close;  // "<think>", "</think>"
};

// The markers that a chat template mentions; null if it mentions none.
const ReasoningMarkers* find_reasoning(std::string_view chat_template);
// Whether a prompt ends with the opening marker, so that the reply begins with reasoning.
bool ends_in_reasoning(const ReasoningMarkers& markers, std::string_view prompt);

// Splits a reply byte by byte. Reasoning can only be what the reply begins with: the same markers
// later on are text. For one reply and one thread.
class ReasoningSplitter {
 public:
  // `begun`: the opening marker is part of the prompt.
  ReasoningSplitter(const ReasoningMarkers& markers, bool begun)
      : markers_(markers),
        place_(begun ? Place::kInside : Place::kStart),
        close_({markers.close}) {}

  // Returns the bytes that are not reasoning, which the sink gets.
  std::string push(char byte, ReplySink& sink);
  std::string finish(ReplySink& sink);

 private:
  enum class Place { kStart, kInside, kAfter };
  const ReasoningMarkers markers_;
  Place place_;
  MarkerSearch close_;
  std::string start_;  // white space and the beginning of the opening marker
};

}  // namespace hearth
