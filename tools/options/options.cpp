#include "tools/options/options.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "tools/options/habits.h"

namespace hearth {
namespace {

bool looks_like_option(std::string_view argument) {
  return argument.size() > 1 && argument.starts_with('-');
}

// As it was typed, but in quotes if it has spaces or other unusual characters.
std::string shown(std::string_view argument) {
  constexpr std::string_view kUsual =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,";
  const bool usual = argument.find_first_not_of(kUsual) == std::string_view::npos;
  return usual && argument.size() <= 80 ? std::string(argument) : in_quotes(argument);
}

}  // namespace

Option& Options::add(std::string_view names, OptionTarget target, std::string help) {
  Option& option = options_.emplace_back(names, target, std::move(help));
  option.group_ = group_;
  return option;
}

Option& Options::at(std::string_view name) {
  Option* option = find(name);
  assert(option != nullptr);
  return *option;
}

Option* Options::find(std::string_view name) {
  const auto found =
      std::ranges::find_if(options_, [&](const Option& option) { return option.named(name); });
  return found == options_.end() ? nullptr : &*found;
}

Option* Options::named_by(std::string_view argument, std::optional<std::string>& value) {
  value.reset();
  if (Option* option = find(argument)) return option;
  if (argument.starts_with("--")) {
    const size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return nullptr;
    value = argument.substr(equals + 1);
    return find(argument.substr(0, equals));
  }
  // Only numbers may follow a letter at once: "-model x" is a typo, not "-m odel".
  if (argument.size() < 3 || argument[2] < '0' || argument[2] > '9') return nullptr;
  Option* option = find(argument.substr(0, 2));
  if (option == nullptr || !is_number(option->target_)) return nullptr;
  value = argument.substr(2);
  return option;
}

Result<Options::Wish> Options::parse(std::span<const std::string> arguments) {
  // Help comes first, so that it is there when something else is wrong.
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") return Wish::kHelp;
    if (argument == "--help-all") return Wish::kHelpAll;
  }
  bool options_ended = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (options_ended || !looks_like_option(argument)) {
      HEARTH_TRY(take_positional(argument));
      continue;
    }
    if (argument == "--") {
      options_ended = true;
      continue;
    }
    std::optional<std::string> value, ignored;
    Option* option = named_by(argument, value);
    if (option == nullptr) {
      if (ignore_unknown_) continue;
      return unknown_option(argument);
    }
    if (!option->takes_value()) {
      if (value) return wrong(*option, "takes no value");
      option->take_flag(argument);
      continue;
    }
    if (!value) {
      if (i + 1 == arguments.size() || named_by(arguments[i + 1], ignored) != nullptr)
        return wrong(*option, fmt::format("needs a value: {} {}", argument, option->metavariable_));
      value = arguments[++i];
    }
    if (const auto reason = option->take(*value)) return wrong(*option, *reason);
  }
  HEARTH_TRY(check_combinations());
  if (const std::string reason = last_check_ ? last_check_() : std::string(); !reason.empty())
    return Error{ErrorKind::kInvalid, fmt::format("{} (see {} --help)", reason, command_)};
  return Wish::kRun;
}

Error Options::unknown_option(std::string_view argument) const {
  if (const auto hint = foreign_option_hint(argument))
    return {ErrorKind::kInvalid,
            fmt::format("{}: {}", argument.substr(0, argument.find('=')), *hint)};
  std::vector<std::string> names;
  for (const Option& option : options_) {
    names.insert(names.end(), option.names_.begin(), option.names_.end());
    if (!option.off_name_.empty()) names.push_back(option.off_name_);
  }
  const auto near = near_words(argument.substr(0, argument.find('=')), names);
  return {ErrorKind::kInvalid, fmt::format("unknown option {}{} (see {} --help)", shown(argument),
                                           did_you_mean(near), command_)};
}

Status Options::take_positional(const std::string& argument) {
  const auto free = std::ranges::find_if(options_, [](const Option& option) {
    return option.positional() && (!option.given() || is_list(option.target_));
  });
  if (free == options_.end()) {
    if (ignore_unknown_) return {};
    const bool takes_any = std::ranges::any_of(options_, &Option::positional);
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} is one argument too many{} (see {} --help)", in_quotes(argument),
                             takes_any ? ": put text with spaces in quotes" : "", command_)};
  }
  if (const auto reason = free->take(argument)) return wrong(*free, *reason);
  return {};
}

Status Options::check_combinations() const {
  for (const Option& option : options_) {
    if (option.required_ && !option.given())
      return Error{ErrorKind::kInvalid,
                   fmt::format("missing {} (see {} --help)", option.description(), command_)};
    if (const auto reason = option.conflict()) return wrong(option, *reason);
  }
  for (const auto& [choices, none_given] : exactly_one_) {
    std::vector<std::string> names;
    for (const Option* choice : choices) names.push_back(choice->name());
    const auto given =
        std::ranges::count_if(choices, [](const Option* choice) { return choice->given(); });
    if (given == 0 && !none_given.empty())
      return Error{ErrorKind::kInvalid, fmt::format("{} (see {} --help)", none_given, command_)};
    if (given != 1)
      return Error{ErrorKind::kInvalid,
                   fmt::format("give {} {} (see {} --help)", given == 0 ? "one of" : "only one of",
                               fmt::join(names, ", "), command_)};
  }
  return {};
}

Error Options::wrong(const Option& option, std::string_view reason) const {
  return {ErrorKind::kInvalid,
          fmt::format("{}: {} (see {} --help)", option.name(), reason, command_)};
}

}  // namespace hearth
