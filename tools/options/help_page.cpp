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
  bool fresh = text.size() + 2 > kHelpColumn;  // no room beside it
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
  const auto shown = [&](const Option& option) { return all || !option.advanced_; };
  std::string usage = fmt::format("Usage: {}", options.command_);
  std::vector<std::string> groups;
  bool hidden = false;
  for (const Option& option : options.options_) {
    if (option.positional())
      usage += option.required_ ? " " + option.metavariable_ : " [" + option.metavariable_ + "]";
    hidden = hidden || !shown(option);
    if (!option.positional() && shown(option) &&
        std::ranges::find(groups, option.group_) == groups.end())
      groups.push_back(option.group_);
  }
  std::string page = fmt::format("{}\n\n{} [OPTIONS]\n", about, usage);
  if (!options.examples_.empty()) page += "\nExamples:\n";
  for (const std::string& example : options.examples_) page += fmt::format("  {}\n", example);

  const auto describe = [](const Option& option) {
    std::string help = option.help_;
    if (!option.values_.empty()) help += fmt::format(": {}", fmt::join(option.values_, ", "));
    if (!option.default_text_.empty())
      help += fmt::format(" (default{}{})", kGlue, option.default_text_);
    return help;
  };
  bool arguments = false;
  for (const Option& option : options.options_) {
    if (!option.positional()) continue;
    if (!arguments) page += "\nArguments:\n";
    arguments = true;
    page += help_entry(option.metavariable_, describe(option));
  }
  for (const std::string& group : groups) {
    page += fmt::format("\n{}:\n", group);
    for (const Option& option : options.options_) {
      if (option.positional() || option.group_ != group || !shown(option)) continue;
      std::string left = fmt::format("{}", fmt::join(option.names_, ", "));
      if (option.names_.front().starts_with("--")) left = "    " + left;
      if (!option.off_name_.empty()) left += ", " + option.off_name_;
      if (option.takes_value()) left += " " + option.metavariable_;
      page += help_entry(left, describe(option));
    }
  }
  if (hidden) page += fmt::format("\n{} --help-all lists every option.\n", options.command_);
  return page;
}

}  // namespace hearth
