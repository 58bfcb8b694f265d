#include "ui/data/glossary.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Glossary, EntriesHaveASectionATermAndAnExplanation) {
  const std::vector<GlossaryEntry> entries = parse_glossary(
      "# Glossary\n\nSome text: not an entry.\n\n## Steps and `batches`\n\n"
      "- **Step** (iteration): one *pass* through the model (`--x`).\n"
      "- **Ratio 1:2**: with a colon. **Other**: also here.\n"
      "- **No explanation**\n"
      "- plain item: ignored\n"
      "## Latency\n- **TTFT**: time to first token");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].section, "Steps and batches");
  EXPECT_EQ(entries[0].term, "Step (iteration)");
  EXPECT_EQ(entries[0].explanation, "One pass through the model (--x).");
  EXPECT_EQ(entries[1].term, "Ratio 1:2");
  EXPECT_EQ(entries[1].explanation, "With a colon. Other: also here.");
  EXPECT_EQ(entries[2].section, "Latency");
  EXPECT_EQ(entries[2].term, "TTFT");
  EXPECT_EQ(entries[2].explanation, "Time to first token");
  EXPECT_TRUE(parse_glossary("").empty());
}

TEST(Glossary, SearchIgnoresCaseAndLooksAtTermsAndExplanations) {
  const GlossaryEntry entry{.section = "x", .term = "TTFT", .explanation = "Time to first token"};
  EXPECT_TRUE(mentions(entry, ""));
  EXPECT_TRUE(mentions(entry, "ttft"));
  EXPECT_TRUE(mentions(entry, "FIRST"));
  EXPECT_FALSE(mentions(entry, "swap"));
}

// The dashboard's help is only as good as the file it is made from.
TEST(Glossary, TheEmbeddedFileExplainsTheDashboardsWords) {
  const std::vector<GlossaryEntry> entries = parse_glossary(glossary_markdown());
  for (const char* term : {"TTFT", "TBT", "TPOT", "KV block", "Prefix cache", "Preemption", "Swap",
                           "Recompute", "Prefill", "Decode", "Padding", "Occupancy", "Batch",
                           "Token budget", "In flight", "Roofline"})
    EXPECT_TRUE(std::ranges::any_of(entries, [&](const GlossaryEntry& entry) {
      return entry.term == term;
    })) << term;
  for (const GlossaryEntry& entry : entries) EXPECT_FALSE(entry.explanation.empty()) << entry.term;
}

// parse_glossary ignores other lines, so an entry's second line would be missing in the dashboard.
TEST(Glossary, EveryLineOfTheEmbeddedFilesSectionsIsAHeadingOrAnEntry) {
  std::istringstream lines{std::string(glossary_markdown())};
  size_t number_of_entries = 0;
  bool in_sections = false;
  for (std::string line; std::getline(lines, line);) {
    in_sections = in_sections || line.starts_with("## ");
    if (!in_sections || line.empty() || line.starts_with("## ")) continue;
    EXPECT_TRUE(line.starts_with("- **")) << line;
    ++number_of_entries;
  }
  EXPECT_GT(number_of_entries, 0u);
  EXPECT_EQ(parse_glossary(glossary_markdown()).size(), number_of_entries);
}

}  // namespace
}  // namespace hearth
