#include "engine/text/tool_calls/fixed_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace hearth {

std::string FixedText::operator()(std::string_view text) const { return expression(text, false); }
std::string FixedText::loose(std::string_view text) const { return expression(text, true); }

bool FixedText::has_control(std::string_view text) const {
  for (const ControlText& one : control)
    if (text.find(one.text) != text.npos) return true;
  return false;
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
