#include "engine/text/tool_calls/reply_parser.h"

#include <algorithm>

namespace hearth {
namespace {

// Shorter beginnings of a marker are more likely text: `a < b` cut after the `<`.
constexpr std::size_t kShortestMarkerBeginning = 3;  // bytes

}  // namespace

ReplyParser::ReplyParser(const Options& options)
    : sink_(!options.tools.empty()),
      shortest_dropped_(options.must_call ? 1 : kShortestMarkerBeginning) {
  if (const ReasoningMarkers* markers = options.format.reasoning)
    reasoning_.emplace(*markers, options.begins_in_reasoning);
  if (!options.tools.empty() || options.format.always_parsed())
    reader_ = options.format.calls->make_reader(options.tools);
}

void ReplyParser::push_answer(std::string_view text) {
  if (reader_ == nullptr) return sink_.content(text);
  for (const char byte : text) reader_->push(byte, sink_);
}

std::vector<ReplyEvent> ReplyParser::push(std::string_view piece) {
  for (const char byte : piece)
    if (reasoning_)
      push_answer(reasoning_->push(byte, sink_));
    else
      push_answer(std::string_view(&byte, 1));
  return sink_.take();
}

// What is left is the beginning of a marker, or white space.
void ReplyParser::finish_reasoning(bool cut_off) {
  const std::string left = reasoning_->finish(sink_);
  const std::size_t begin = std::min(left.find_first_not_of(kReplySpace), left.size());
  if (!cut_off || left.size() - begin < shortest_dropped_) push_answer(left);
}

std::vector<ReplyEvent> ReplyParser::finish(bool cut_off) {
  if (reasoning_) finish_reasoning(cut_off);
  if (cut_off) sink_.cut_off(shortest_dropped_);
  if (reader_ != nullptr) reader_->finish(sink_);
  sink_.finish();
  return sink_.take();
}

}  // namespace hearth
