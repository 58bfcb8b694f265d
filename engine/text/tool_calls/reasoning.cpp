#include "engine/text/tool_calls/reasoning.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

constexpr ReasoningMarkers kReasoning[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|channel>thought", "<channel|>"},  // Gemma 4
    {"<seed:think>", "</seed:think>"},
    {"<mm:think>", "</mm:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
};

bool mentions_marker(std::string_view text, std::string_view marker) {
  return text.find(marker) != std::string_view::npos;
}

}  // namespace

const ReasoningMarkers* find_reasoning(std::string_view chat_template) {
  const auto place = std::ranges::find_if(kReasoning, [&](const ReasoningMarkers& markers) {
    return mentions_marker(chat_template, markers.open) ||
           mentions_marker(chat_template, markers.close);
  });
  return place == std::end(kReasoning) ? nullptr : &*place;
}

bool ends_in_reasoning(const ReasoningMarkers& markers, std::string_view prompt) {
  const std::size_t last = prompt.find_last_not_of(kReplySpace);
  return last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(markers.open);
}

std::string ReasoningSplitter::push(char byte, ReplySink& sink) {
  switch (place_) {
    case Place::kStart: {
      start_ += byte;
      const std::string_view begun = std::string_view(start_).substr(
          std::min(start_.find_first_not_of(kReplySpace), start_.size()));
      if (begun == markers_.open) {
        place_ = Place::kInside;
        start_.clear();
      } else if (!markers_.open.starts_with(begun)) {
        place_ = Place::kAfter;
        return std::exchange(start_, {});
      }
      return {};
    }
    case Place::kInside: {
      std::string text;
      const bool closed = close_.push(byte, text).has_value();
      sink.reasoning(text);
      if (!closed) return {};
      place_ = Place::kAfter;
      sink.end_reasoning();
      return {};
    }
    case Place::kAfter:
      return std::string(1, byte);
  }
  return {};
}

std::string ReasoningSplitter::finish(ReplySink& sink) {
  if (place_ == Place::kInside) sink.reasoning(close_.finish());
  return std::exchange(start_, {});
}

}  // namespace hearth
