#include "engine/text/banned_strings.h"

#include <algorithm>
#include <utility>

namespace hearth {

void BannedStrings::push(std::string_view text) {
  text_ += text;
  lengths_.push_back(text.size());
}

std::optional<size_t> BannedStrings::find(size_t bytes) const {
  if (bytes <= released_bytes_) return std::nullopt;
  const std::string_view text = std::string_view(text_).substr(0, bytes - released_bytes_);
  std::optional<std::pair<size_t, size_t>> first;  // end and beginning
  for (const std::string& string : strings_) {
    const size_t begin = text.find(string);
    if (begin == std::string_view::npos) continue;
    const std::pair match{begin + string.size(), begin};
    if (!first || match < *first) first = match;
  }
  if (!first) return std::nullopt;
  size_t token = 0;
  for (size_t end = lengths_[0]; end <= first->second; end += lengths_[token]) ++token;
  return token;
}

size_t BannedStrings::certain() const {
  // The longest end of the text that is the beginning of a banned string.
  size_t keep = 0;
  for (const std::string& string : strings_)
    for (size_t length = std::min(string.size() - 1, text_.size()); length > keep; --length)
      if (text_.ends_with(std::string_view(string).substr(0, length))) {
        keep = length;
        break;
      }
  size_t tokens = 0;
  for (size_t end = 0; tokens < lengths_.size(); ++tokens) {
    end += lengths_[tokens];
    if (end > text_.size() - keep) break;
  }
  return tokens;
}

void BannedStrings::release() {
  released_bytes_ += lengths_.front();
  text_.erase(0, lengths_.front());
  lengths_.pop_front();
}

void BannedStrings::take_back(size_t token) {
  size_t bytes = 0;
  for (size_t i = 0; i < token; ++i) bytes += lengths_[i];
  text_.resize(bytes);
  lengths_.resize(token);
}

}  // namespace hearth
