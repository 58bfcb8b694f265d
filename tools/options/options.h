// The options of one command: declares them with the variables they set, and reads a command line.
// help_page.h prints them. Knows nothing about the commands themselves. For example:
//
//   options.group("Sampling");
//   options.add("--temp T", &temperature, "Randomness; 0 always takes the most likely token")
//       .range(0, 1e6);
//   options.add("--json", &json, "Print one JSON object");
//
// REQUIRES: the variables outlive the Options, and the Options outlive every pointer to an Option.
// An Options reads one command line.
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

  // `names` are the option's names and what help shows for the value: "-n,--tokens N". A flag has
  // no value; "!--light" among its names sets it to false. A name without a dash is a positional
  // argument. Positional arguments are filled in order, and a vector takes all that are left. The
  // variable's present value is the default; help shows it unless it is 0 or empty.
  Option& add(std::string_view names, OptionTarget target, std::string help);
  // The option of that name. REQUIRES: it was added.
  Option& at(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }

  // The heading in help for the options added from here on.
  void group(std::string title) { group_ = std::move(title); }
  // A command line worth copying, for help: "hearth run \"Once upon a time\"".
  void example(std::string command_line) { examples_.push_back(std::move(command_line)); }

  // Exactly one of these must be given. `none_given` is the message if none is; without it, the
  // message lists the choices.
  void exactly_one(std::vector<const Option*> choices, std::string none_given = {}) {
    exactly_one_.push_back({std::move(choices), std::move(none_given)});
  }
  // Called when all variables are set; returns what is wrong with them together, empty if nothing
  // is.
  void check(std::function<std::string()> last_check) { last_check_ = std::move(last_check); }
  // Accepts unknown arguments.
  void ignore_unknown() { ignore_unknown_ = true; }

  enum class Wish { kRun, kHelp, kHelpAll };
  // Reads the arguments after the command's name and sets the variables. --help comes first,
  // whatever else is wrong.
  Result<Wish> parse(std::span<const std::string> arguments);

 private:
  friend class HelpPage;

  struct Choice {
    std::vector<const Option*> options;
    std::string none_given;
  };

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
  std::vector<Choice> exactly_one_;
  std::function<std::string()> last_check_;
  bool ignore_unknown_ = false;
};

}  // namespace hearth
