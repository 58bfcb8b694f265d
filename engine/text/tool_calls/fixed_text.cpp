#include "engine/text/tool_calls/fixed_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

// A regular expression for exactly this text, between slashes.
std::string exact_regex(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || (c & 0x80) != 0;
    if (is_plain)
      pattern += c;
    else if (c == '\n')
      pattern += "\\n";
    else
      pattern += std::string_view("]\\^-").find(c) != std::string_view::npos
                     ? fmt::format("[\\{}]", c)
                     : fmt::format("[{}]", c);
  }
  return pattern;
}

}  // namespace

std::string FixedText::operator()(std::string_view text) const { return expression(text, false); }
std::string FixedText::loose(std::string_view text) const { return expression(text, true); }

bool FixedText::has_control(std::string_view text) const {
  for (const ControlText& one : control)
    if (text.find(one.text) != text.npos) return true;
  return false;
}

std::string FixedText::text_before(std::string_view text) const {
  // No text has a control token in it.
  if (has_control(text)) return "/[\\s\\S]*/ " + (*this)(text);
  return fmt::format("/(?![\\s\\S]*{})[\\s\\S]*/ {}", exact_regex(text), (*this)(text));
}

std::string FixedText::expression(std::string_view text, bool loose) const {
  std::string rule, plain;
  const auto add = [&](const std::string& part) {
    if (!plain.empty())
      rule += (rule.empty() ? "" : " ") + nlohmann::json(std::exchange(plain, {})).dump();
    if (!part.empty()) rule += (rule.empty() ? "" : " ") + part;
  };
  while (!text.empty()) {
    const ControlText* longest = nullptr;
    for (const ControlText& one : control)
      if (text.starts_with(one.text) &&
          (longest == nullptr || one.text.size() > longest->text.size()))
        longest = &one;
    if (longest != nullptr) {
      add(fmt::format("<[{}]>", longest->id));
      text.remove_prefix(longest->text.size());
      continue;
    }
    if (loose && text.front() == '\n')
      add("/[ \\n]{0,4}/");
    else
      plain += text.front();
    text.remove_prefix(1);
  }
  add({});
  return rule;
}

}  // namespace hearth
