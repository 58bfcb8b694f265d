// The options of one command: declared with the variables they set, shown by --help, and read from
// a command line. Knows no command. For example:
//
//   options.group("Sampling");
//   options.add("--temp T", &temperature, "Randomness; 0 always takes the most likely token")
//       .range(0, 1e6);
//   options.add("--json", &json, "Print one JSON object");
//
// REQUIRES: variables outlive it, and the Options outlive every pointer to an Option.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/result.h"
#include "tools/options/option.h"

namespace hearth {

class Options {
 public:
  // `command` is what a user types: "hearth run".
  explicit Options(std::string command) : command_(std::move(command)) {}
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Names, then what help shows for the value: "-n,--tokens N". A flag has no value, and "!--light"
  // among its names sets it to false. A name without a dash is a positional argument; those are
  // filled in order, a vector takes all that are left. The variable's value now is the default,
  // which help shows unless it is 0 or empty.
  Option& add(std::string_view names, OptionTarget target, std::string help);
  // The option of that name. REQUIRES: it was added.
  Option& at(std::string_view name);

  // The heading in help for what is added from here on.
  void group(std::string title) { group_ = std::move(title); }
  // A command line worth copying, for help: "hearth run \"Once upon a time\"".
  void example(std::string command_line) { examples_.push_back(std::move(command_line)); }

  // One of these must be given, and only one.
  void exactly_one(std::vector<const Option*> choices) {
    exactly_one_.push_back(std::move(choices));
  }
  // Called when all variables are set; returns what is wrong with them together, empty if nothing
  // is.
  void check(std::function<std::string()> last_check) { last_check_ = std::move(last_check); }
  // Unknown arguments are no errors.
  void ignore_unknown() { ignore_unknown_ = true; }

  enum class Wish { kRun, kHelp, kHelpAll };
  // Reads the arguments after the command's name and sets the variables. A wish for help is
  // granted whatever else is wrong.
  Result<Wish> parse(std::span<const std::string> arguments);

 private:
  friend class HelpPage;

  Option* find(std::string_view name);
  // The option that an argument names, by itself, as "--tokens=5" or as "-n5"; the value, if any,
  // is left in `value`.
  Option* named_by(std::string_view argument, std::optional<std::string>& value);
  Status take_positional(const std::string& argument);
  Status check_combinations() const;
  Error unknown_option(std::string_view argument) const;
  Error wrong(const Option& option, std::string_view reason) const;

  std::string command_, group_ = "Options";
  std::vector<std::string> examples_;
  std::deque<Option> options_;  // addresses must last
  std::vector<std::vector<const Option*>> exactly_one_;
  std::function<std::string()> last_check_;
  bool ignore_unknown_ = false;
};

}  // namespace hearth
