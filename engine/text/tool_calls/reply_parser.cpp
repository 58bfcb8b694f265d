#include "engine/text/tool_calls/reply_parser.h"

namespace hearth {

ReplyParser::ReplyParser(const Options& options) : sink_(!options.tools.empty()) {
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

std::vector<ReplyEvent> ReplyParser::finish(bool cut_off) {
  if (cut_off) sink_.cut_off();
  if (reasoning_) push_answer(reasoning_->finish(sink_));
  if (reader_ != nullptr) reader_->finish(sink_);
  sink_.finish();
  return sink_.take();
}

}  // namespace hearth
