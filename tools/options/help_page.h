// What --help prints for a command.
#pragma once

#include <string>
#include <string_view>

#include "tools/options/options.h"

namespace hearth {

class HelpPage {
 public:
  // `about` is one sentence without a full stop. With `all`, advanced options are shown, too. Lines
  // have at most 100 columns.
  static std::string text(const Options& options, std::string_view about, bool all);

 private:
  HelpPage(const Options& options, bool all) : options_(options), all_(all) {}

  bool shows(const Option& option) const {
    return !option.positional() && (all_ || !option.advanced_);
  }
  std::string usage() const;
  std::string examples() const;
  std::string arguments() const;
  std::string groups() const;
  std::string footer() const;
  static std::string names(const Option& option);
  static std::string description(const Option& option);

  const Options& options_;
  bool all_;
};

}  // namespace hearth
