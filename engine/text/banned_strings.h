// Looks for strings that a text may not contain, while the text arrives token by token. Tokens
// whose text may be the beginning of such a string are held back, so that they can be taken back.
// For one stream and one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class BannedStrings {
 public:
  // REQUIRES: no string is empty.
  explicit BannedStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}

  // Adds a token, which is held back from now on. Its text may be empty.
  void push(std::string_view text);
  size_t held() const { return lengths_.size(); }
  // The held token in which a banned string begins. Of several strings, the one that ends first,
  // and of those the one that begins first. Strings that end after the first `bytes` bytes of the
  // whole text do not count.
  std::optional<size_t> find(size_t bytes) const;
  // How many of the held tokens, from the oldest on, end before any text that may become a banned
  // string. REQUIRES: find() finds nothing.
  size_t certain() const;
  // The oldest held token need not be held back any more.
  void release();
  // Forgets the held tokens from `token` on.
  void take_back(size_t token);

 private:
  std::vector<std::string> strings_;
  std::string text_;            // of the held tokens
  std::deque<size_t> lengths_;  // of their texts
  size_t released_bytes_ = 0;   // of the text before them
};

}  // namespace hearth
