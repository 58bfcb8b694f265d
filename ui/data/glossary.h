// The words used in the dashboard, from docs/glossary.md, which is embedded at build time. Pure
// functions, callable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct GlossaryEntry {
  std::string section;      // "Latency and throughput"
  std::string term;         // "TTFT"
  std::string explanation;  // plain text
};

// Reads "## Section" headings and entries of the form "- **Term**: explanation", one per line.
// Other lines are ignored. Markdown's emphasis and code marks are removed, and an explanation starts
// with a capital letter.
std::vector<GlossaryEntry> parse_glossary(std::string_view markdown);

// Whether the term or the explanation contains the text, ignoring case. An empty text matches all.
bool mentions(const GlossaryEntry& entry, std::string_view text);

// The contents of docs/glossary.md.
std::string_view glossary_markdown();

}  // namespace hearth
