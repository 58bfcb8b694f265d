#include "ui/data/glossary.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace hearth {
namespace {

std::string without_marks(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != '*' && c != '`') plain += c;
  return plain;
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return !std::ranges::search(text, part, same).empty() || part.empty();
}

}  // namespace

std::vector<GlossaryEntry> parse_glossary(std::string_view markdown) {
  constexpr std::string_view kSection = "## ", kEntry = "- **", kColon = ": ";
  std::vector<GlossaryEntry> entries;
  std::string section;
  while (!markdown.empty()) {
    const size_t end = std::min(markdown.find('\n'), markdown.size());
    const std::string_view line = markdown.substr(0, end);
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
    if (line.starts_with(kSection)) section = without_marks(line.substr(kSection.size()));
    if (!line.starts_with(kEntry)) continue;
    // The colon comes after the closing marks, because a term may contain one itself.
    const size_t close = line.find("**", kEntry.size());
    const size_t colon = line.find(kColon, std::min(close, line.size()));
    if (colon == std::string_view::npos) continue;
    std::string explanation = without_marks(line.substr(colon + kColon.size()));
    if (!explanation.empty())
      explanation[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(explanation[0])));
    entries.push_back({.section = section,
                       .term = without_marks(line.substr(2, colon - 2)),
                       .explanation = std::move(explanation)});
  }
  return entries;
}

bool mentions(const GlossaryEntry& entry, std::string_view text) {
  return contains(entry.term, text) || contains(entry.explanation, text);
}

}  // namespace hearth
