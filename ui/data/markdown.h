// Markdown as blocks of styled text. Every piece of text keeps its place in the source, so that
// tokens can be found in what is drawn. Reads with md4c; in builds without it, all text is plain.
// Pure functions, callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// How text looks; styles are added up.
struct TextStyle {
  bool bold = false, italic = false, mono = false, link = false, struck = false;
  uint8_t heading = 0;  // 1 is the largest; 0: none

  bool operator==(const TextStyle&) const = default;
};

struct MarkdownSpan {
  size_t begin = 0, end = 0;  // bytes of the source
  std::string inserted;       // drawn instead: a decoded entity such as "<", or a line break
  TextStyle style;
};

struct MarkdownBlock {
  enum class Kind : uint8_t { kText, kCode, kRule };
  Kind kind = Kind::kText;
  uint8_t indent = 0;    // levels of lists
  uint8_t quotes = 0;    // levels of quotations
  bool tight = false;    // follows the previous block without a gap, as items of a list do
  std::string marker;    // before the first line: a bullet or "1."
  std::string language;  // of a code block; may be empty
  std::vector<MarkdownSpan> spans;
};

// True if this build has md4c.
bool has_markdown();
// The text as Markdown. While it is being generated, unclosed markers are plain text.
std::vector<MarkdownBlock> parse_markdown(std::string_view source);
// The text as it is: one block with one span.
std::vector<MarkdownBlock> plain_text(std::string_view source);
// What a code block holds, for the clipboard.
std::string code_text(const MarkdownBlock& block, std::string_view source);

}  // namespace hearth
