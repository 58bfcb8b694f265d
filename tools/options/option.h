// One option or positional argument of a command: its names, the variable it sets, the checks on
// its value and its help text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/options/option_value.h"

namespace hearth {

class Option {
 public:
  // Returns what is wrong with a value; empty if nothing is.
  using Check = std::function<std::string(const std::string& value)>;

  // See Options::add().
  Option(std::string_view names, OptionTarget target, std::string help);

  // Checks and help. Each returns *this, so that a declaration is one expression.
  Option& required();
  Option& range(double lowest, double highest);  // both included
  Option& one_of(std::vector<std::string> values);
  Option& check(Check check);
  Option& bytes();                // "512MB"; REQUIRES: a uint64_t
  Option& separator(char split);  // "1,8,64" is three values; REQUIRES: a vector
  // With `values`: the other one has one of these values, of which a colon and more may follow.
  Option& needs(const Option& other, std::vector<std::string> values = {});
  Option& excludes(const Option& other);
  // With this value the option does nothing, so it needs no other and contradicts none.
  Option& idle_at(double value);
  // Another name that is accepted, but that help does not show.
  Option& alias(std::string name);
  // Left out of --help; --help-all shows it.
  Option& advanced();
  Option& help(std::string text);
  // What help says in "(default: ...)" instead of the variable's value.
  Option& default_text(std::string text);

  // True once the command line has named it.
  bool given() const { return count_ > 0; }

 private:
  friend class Options;
  friend class HelpPage;

  bool positional() const { return names_.empty(); }
  bool named(std::string_view name) const;
  // The name in error messages: the long name, or the positional's metavariable.
  const std::string& name() const;
  // "argument OUT", "option --file FILE".
  std::string description() const;
  bool takes_value() const { return !is_flag(target_); }
  // Stores one argument, or returns what is wrong with it.
  std::optional<std::string> take(const std::string& text);
  void take_flag(std::string_view name);
  // The message for a value that is not one of values_.
  std::string unknown_value(const std::string& value) const;
  // Whether it was given a value that does something.
  bool acts() const { return given() && !idle_; }
  // Why it cannot be used together with the other options given, if so.
  std::optional<std::string> conflict() const;

  std::vector<std::string> names_;  // "-p", "--prompt"; none: positional
  std::vector<std::string> aliases_;
  std::string off_name_;      // sets a flag to false: "--light"
  std::string metavariable_;  // "TEXT"
  OptionTarget target_;
  std::string help_, default_text_, group_;
  std::vector<std::string> values_;  // the only ones allowed; empty: any
  std::optional<OptionRange> range_;
  std::optional<double> idle_at_;
  Check check_;
  struct Need {
    const Option* option;
    std::vector<std::string> values;  // empty: any
  };
  std::vector<Need> needs_;
  std::vector<const Option*> excludes_;
  std::string text_;  // the last value given
  char separator_ = '\0';
  bool required_ = false, bytes_ = false, advanced_ = false, idle_ = false;
  size_t count_ = 0;
};

}  // namespace hearth
