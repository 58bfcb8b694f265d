// Finds the first of several strings in a text that arrives in pieces, and holds back text that may
// be the beginning of one. For one stream and one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> strings);

  // Returns the text that cannot belong to a stop string. Returns nothing more after found().
  std::string push(std::string_view piece);
  // Returns the text that was held back, at the end of a stream without a stop string.
  std::string finish();

  bool found() const { return found_; }
  // The string that was found; empty before.
  const std::string& match() const { return match_; }

 private:
  std::vector<std::string> strings_;
  std::string held_, match_;
  bool found_ = false;
};

}  // namespace hearth
