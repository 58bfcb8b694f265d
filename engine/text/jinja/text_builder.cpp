#include "engine/text/jinja/text_builder.h"

#include <algorithm>

namespace hearth::jinja {

void TextBuilder::append(std::string_view text, Origin origin) {
  // Nothing costs a step as well: a list of a million empty strings takes time to join.
  heap_.budget().handle_bytes(text.size());
  if (text.empty()) return;
  const std::size_t needed = text_.size() + text.size();
  if (needed > taken_) {
    const std::size_t wanted = std::max(needed, 2 * taken_);  // as std::string grows
    heap_.budget().take_memory(wanted - taken_);
    taken_ = wanted;
    text_.reserve(wanted);
  }
  text_ += text;
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = static_cast<std::uint32_t>(needed);
  } else {
    heap_.budget().take_memory(2 * sizeof(Run));
    taken_for_runs_ += 2 * sizeof(Run);
    runs_.push_back({static_cast<std::uint32_t>(needed), origin});
  }
}

void TextBuilder::append(const Value& string) {
  if (string.marks == nullptr || string.marks == &kAllInput) {
    append(string.view_text(), string.marks == nullptr ? Origin::kTemplate : Origin::kInput);
    return;
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < string.marks->count; ++i) {
    const Run& run = string.marks->runs[i];
    append(string.view_text().substr(begin, run.end - begin), run.origin);
    begin = run.end;
  }
}

Value TextBuilder::finish() {
  Value result = Value::borrowed(heap_.copy(text_));
  if (runs_.size() == 1) {
    result.marks = runs_[0].origin == Origin::kInput ? &kAllInput : nullptr;
  } else if (runs_.size() > 1) {
    Run* const runs = heap_.array<Run>(runs_.size());
    std::ranges::copy(runs_, runs);
    result.marks = heap_.make(Marks{runs, static_cast<std::uint32_t>(runs_.size())});
  }
  return result;
}

Rendering TextBuilder::take() { return {std::move(text_), std::move(runs_)}; }

}  // namespace hearth::jinja
