#include "tools/options/option.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

// The placeholder for a value if the declaration names none.
std::string usual_metavariable(const OptionTarget& target) {
  if (is_flag(target)) return {};
  if (std::holds_alternative<std::filesystem::path*>(target)) return "FILE";
  return is_number(target) ? "N" : "TEXT";
}

}  // namespace

Option::Option(std::string_view names, OptionTarget target, std::string help)
    : target_(target), help_(std::move(help)), default_text_(value_text(target)) {
  const size_t space = names.find(' ');
  std::string_view left = names.substr(0, space);
  if (!left.starts_with('-')) {
    metavariable_ = names;
    return;
  }
  while (!left.empty()) {
    const std::string_view name = left.substr(0, left.find(','));
    if (name.starts_with('!'))
      off_name_ = name.substr(1);
    else
      names_.emplace_back(name);
    left.remove_prefix(std::min(left.size(), name.size() + 1));
  }
  metavariable_ = space == std::string_view::npos ? usual_metavariable(target)
                                                  : std::string(names.substr(space + 1));
}

Option& Option::required() {
  required_ = true;
  return *this;
}

Option& Option::range(double lowest, double highest) {
  range_ = {.lowest = lowest, .highest = highest};
  return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
  values_ = std::move(values);
  return *this;
}

Option& Option::check(Check check) {
  check_ = std::move(check);
  return *this;
}

Option& Option::bytes() {
  bytes_ = true;
  default_text_ = size_text(target_);
  if (metavariable_ == "N") metavariable_ = "SIZE";
  return *this;
}

Option& Option::separator(char split) {
  separator_ = split;
  return *this;
}

Option& Option::needs(const Option& other, std::vector<std::string> values) {
  needs_.push_back({&other, std::move(values)});
  return *this;
}

Option& Option::excludes(const Option& other) {
  excludes_.push_back(&other);
  return *this;
}

Option& Option::idle_at(double value) {
  idle_at_ = value;
  return *this;
}

Option& Option::alias(std::string name) {
  aliases_.push_back(std::move(name));
  return *this;
}

Option& Option::advanced() {
  advanced_ = true;
  return *this;
}

Option& Option::help(std::string text) {
  help_ = std::move(text);
  return *this;
}

Option& Option::default_text(std::string text) {
  default_text_ = std::move(text);
  return *this;
}

bool Option::named(std::string_view name) const {
  return std::ranges::find(names_, name) != names_.end() ||
         std::ranges::find(aliases_, name) != aliases_.end() ||
         (!off_name_.empty() && off_name_ == name);
}

const std::string& Option::name() const { return positional() ? metavariable_ : names_.back(); }

std::string Option::description() const {
  if (positional()) return "argument " + metavariable_;
  return takes_value() ? fmt::format("option {} {}", name(), metavariable_) : "option " + name();
}

std::string Option::unknown_value(const std::string& value) const {
  const std::vector<std::string> near = near_words(value, values_);
  return fmt::format(
      "unknown value {}{}", in_quotes(value),
      near.empty() ? fmt::format("; use {}", joined_with_or(values_)) : did_you_mean(near));
}

std::optional<std::string> Option::take(const std::string& text) {
  if (count_ > 0 && !is_list(target_)) return "given twice";
  text_ = text;
  idle_ = idle_at_ && std::strtod(text.c_str(), nullptr) == *idle_at_;
  // The first value of a list replaces its default.
  if (count_++ == 0) clear_list(target_);
  std::string_view left = text;
  while (true) {
    const size_t end =
        separator_ == '\0' ? left.size() : std::min(left.find(separator_), left.size());
    const std::string value(left.substr(0, end));
    if (!values_.empty() && std::ranges::find(values_, value) == values_.end())
      return unknown_value(value);
    if (check_)
      if (std::string wrong = check_(value); !wrong.empty()) return wrong;
    if (auto wrong =
            bytes_ ? store_size(target_, value, range_) : store_value(target_, value, range_))
      return wrong;
    if (end == left.size()) return std::nullopt;
    left.remove_prefix(end + 1);
  }
}

void Option::take_flag(std::string_view name) {
  ++count_;
  store_flag(target_, off_name_.empty() || name != off_name_);
}

std::optional<std::string> Option::conflict() const {
  if (!acts()) return std::nullopt;
  for (const auto& [other, values] : needs_) {
    const std::string value = other->text_.substr(0, other->text_.find(':'));
    const bool fits = values.empty() || std::ranges::find(values, value) != values.end();
    if (!other->given() || !fits)
      return fmt::format("only works with {}{}{}", other->name(), values.empty() ? "" : " ",
                         joined_with_or(values));
  }
  for (const Option* other : excludes_)
    if (other->acts()) return fmt::format("cannot be combined with {}", other->name());
  return std::nullopt;
}

}  // namespace hearth
