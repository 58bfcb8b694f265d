// Finds the first of several strings in a text that arrives in pieces, and holds back what may turn
// out to be the beginning of one. One stream, one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> strings);

  // Text that is certain not to belong to a stop string. After found(), nothing more.
  std::string push(std::string_view piece);
  // What was held back, at the end of a stream without a stop string.
  std::string finish();

  bool found() const { return found_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool found_ = false;
};

}  // namespace hearth
