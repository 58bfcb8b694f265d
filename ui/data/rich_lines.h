// Wraps styled text into lines of a given width, and finds the bytes of the source in them: which
// byte is at a position, and which rectangles a range of bytes covers. Positions are those at which
// Dear ImGui draws: a piece begins at a whole pixel, and its characters follow one another by their
// exact widths. Independent of fonts. Used by one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/data/markdown.h"

namespace hearth {

// Decodes the UTF-8 character at `at` and advances `at` past it. Returns U+FFFD for an invalid
// byte.
char32_t take_character(std::string_view text, size_t& at);

// All sizes are in pixels.
struct RichMetrics {
  std::function<float(char32_t, TextStyle)> advance;  // the width of a character
  std::function<float(TextStyle)> line_height;
  float indent = 0;        // per level of a list
  float gap = 0;           // between blocks
  float padding = 0;       // around code
  float code_heading = 0;  // above it, for its language and a button
};

// A stretch of one line in one style. `text` is drawn at (x, line.y).
struct RichPiece {
  size_t begin = 0, end = 0;  // bytes of the source; the same number: the text was inserted
  std::string inserted;       // drawn instead of the source
  float x = 0, width = 0;
  TextStyle style;

  std::string_view text(std::string_view source) const {
    return inserted.empty() ? source.substr(begin, end - begin) : std::string_view(inserted);
  }
};

struct RichLine {
  float y = 0, height = 0;
  size_t block = 0;
  size_t end = 0;  // the last byte of the source that is drawn in this line or above it
  std::vector<RichPiece> pieces;
};

// Where a block is drawn, for the box of a code block or the bar of a quotation.
struct RichBlock {
  float x = 0, y = 0, height = 0;
};

struct RichBox {
  float left = 0, top = 0, right = 0, bottom = 0;
  bool blank = false;  // there are only blanks in it
};

class RichLines {
 public:
  // REQUIRES: the blocks come from this source.
  void layout(std::vector<MarkdownBlock> blocks, std::string_view source, float width,
              const RichMetrics& metrics);
  // As above, unless the arguments are those of the last call. `markdown`: whether to read the
  // source as Markdown. `version` is any number that changes with the metrics.
  void update(std::string_view source, bool markdown, float width, float version,
              const RichMetrics& metrics);

  const std::vector<MarkdownBlock>& blocks() const { return blocks_; }
  const std::vector<RichBlock>& places() const { return places_; }  // of the blocks
  const std::vector<RichLine>& lines() const { return lines_; }
  float width() const { return widest_; }
  float height() const { return height_; }

  // The first line that ends below y.
  size_t line_at(float y) const;
  // The byte whose character is at this position. With `nearest`, the end of the text before it if
  // there is none, as when text is selected.
  std::optional<size_t> byte_at(float x, float y, std::string_view source,
                                const RichMetrics& metrics, bool nearest = false) const;
  // Calls visit(RichBox) for each part of a line that shows bytes from `begin` to `end`.
  void boxes(size_t begin, size_t end, std::string_view source, const RichMetrics& metrics,
             const std::function<void(const RichBox&)>& visit) const;

 private:
  void wrap(size_t block, std::string_view source, float left, float room,
            const RichMetrics& metrics, float& y);

  std::vector<MarkdownBlock> blocks_;
  std::vector<RichBlock> places_;
  std::vector<RichLine> lines_;
  float widest_ = 0, height_ = 0;
  // The arguments of the last update().
  size_t size_ = 0;
  bool markdown_ = false, updated_ = false;
  float limit_ = 0, version_ = 0;
};

}  // namespace hearth
