// Puts strings together and keeps track of where each byte comes from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(heap) {}
  ~TextBuilder() { heap_.budget().return_memory(taken_ + taken_for_runs_); }
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  void append(std::string_view text, Origin origin);
  // REQUIRES: string.is_string()
  void append(const Value& string);
  void append_slice(const Value& string, std::size_t begin, std::size_t end) {
    append(heap_.slice(string, begin, end));
  }

  std::size_t size() const { return text_.size(); }
  std::string_view text() const { return text_; }

  // What was put together, as a string on the heap.
  Value finish();
  // What was put together, for the caller of the template.
  Rendering take();

 private:
  Heap& heap_;
  std::string text_;
  std::vector<Run> runs_;
  std::size_t taken_ = 0, taken_for_runs_ = 0;  // memory charged
};

// Walks a string and tells the origin of each position. Positions asked for never decrease.
class OriginCursor {
 public:
  explicit OriginCursor(const Value& string) : marks_(string.marks) {}
  Origin at(std::size_t position) {
    if (marks_ == nullptr) return Origin::kTemplate;
    if (marks_ == &kAllInput) return Origin::kInput;
    while (marks_->runs[index_].end <= position) ++index_;
    return marks_->runs[index_].origin;
  }

 private:
  const Marks* marks_;
  std::size_t index_ = 0;
};

}  // namespace hearth::jinja
