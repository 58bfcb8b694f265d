#include "tools/options/help_page.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hearth {
namespace {

constexpr size_t kPageWidth = 100;
constexpr size_t kHelpColumn = 30;

constexpr char kGlue = '\x01';  // a space that no line is broken at

// Lines no longer than `width`, broken between words.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > width) {
      end = text.rfind(' ', width);
      if (end == std::string_view::npos || end == 0) end = std::min(text.find(' '), text.size());
    }
    std::ranges::replace(lines.emplace_back(text.substr(0, end)), kGlue, ' ');
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

// "  -n, --tokens N              Generate at most N tokens", over as many lines as it takes.
std::string help_entry(const std::string& left, std::string_view right) {
  std::string text = "  " + left;
  bool fresh = text.size() + 2 > kHelpColumn;  // no room for help on the same line
  if (fresh) text += '\n';
  for (const std::string& line : wrapped_lines(right, kPageWidth - kHelpColumn)) {
    const size_t pad = fresh ? kHelpColumn : kHelpColumn - std::min(kHelpColumn, text.size());
    text += std::string(pad, ' ') + line + '\n';
    fresh = true;
  }
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace

std::string HelpPage::text(const Options& options, std::string_view about, bool all) {
  const HelpPage page(options, all);
  return fmt::format("{}\n\n{}{}{}{}{}", about, page.usage(), page.examples(), page.arguments(),
                     page.groups(), page.footer());
}

std::string HelpPage::usage() const {
  std::string line = fmt::format("Usage: {}", options_.command_);
  for (const Option& option : options_.options_)
    if (option.positional())
      line += option.required_ ? " " + option.metavariable_ : " [" + option.metavariable_ + "]";
  return line + " [OPTIONS]\n";
}

std::string HelpPage::examples() const {
  std::string text = options_.examples_.empty() ? "" : "\nExamples:\n";
  for (const std::string& example : options_.examples_) text += fmt::format("  {}\n", example);
  return text;
}

std::string HelpPage::arguments() const {
  std::string text;
  for (const Option& option : options_.options_)
    if (option.positional()) text += help_entry(option.metavariable_, description(option));
  return text.empty() ? text : "\nArguments:\n" + text;
}

std::string HelpPage::groups() const {
  // In the order in which they were first mentioned.
  std::vector<std::string> titles;
  for (const Option& option : options_.options_)
    if (shows(option) && std::ranges::find(titles, option.group_) == titles.end())
      titles.push_back(option.group_);
  std::string text;
  for (const std::string& title : titles) {
    text += fmt::format("\n{}:\n", title);
    for (const Option& option : options_.options_)
      if (shows(option) && option.group_ == title)
        text += help_entry(names(option), description(option));
  }
  return text;
}

std::string HelpPage::footer() const {
  const bool all_shown = std::ranges::all_of(options_.options_, [&](const Option& option) {
    return option.positional() || shows(option);
  });
  return all_shown ? std::string()
                   : fmt::format("\n{} --help-all lists every option.\n", options_.command_);
}

std::string HelpPage::names(const Option& option) {
  // Long names stand below each other whether or not there is a short one.
  std::string text = option.names_.front().starts_with("--") ? "    " : "";
  text += fmt::format("{}", fmt::join(option.names_, ", "));
  if (!option.off_name_.empty()) text += ", " + option.off_name_;
  if (option.takes_value()) text += " " + option.metavariable_;
  return text;
}

std::string HelpPage::description(const Option& option) {
  std::string values;
  for (size_t i = 0; i < option.values_.size(); ++i) {
    if (i > 0) values += i + 1 == option.values_.size() ? " or " : ", ";
    values += option.values_[i];
  }
  std::string standard = option.default_text_.empty() ? "" : "default: " + option.default_text_;
  std::ranges::replace(standard, ' ', kGlue);
  if (values.empty() && standard.empty()) return option.help_;
  const char* between = values.empty() || standard.empty() ? "" : "; ";
  return fmt::format("{} ({}{}{})", option.help_, values, between, standard);
}

}  // namespace hearth
