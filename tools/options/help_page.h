// What --help prints for a command.
#pragma once

#include <string>
#include <string_view>

#include "tools/options/options.h"

namespace hearth {

class HelpPage {
 public:
  // `about` is one sentence. With `all`, advanced options are shown, too.
  static std::string text(const Options& options, std::string_view about, bool all);
};

}  // namespace hearth
