#include "ui/data/rich_lines.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth {
namespace {

// A character of a block, before lines are broken.
struct RichCharacter {
  size_t begin = 0, end = 0;  // bytes of the source
  const MarkdownSpan* inserted = nullptr;
  std::string_view text;
  char32_t code = 0;
  TextStyle style;
  float width = 0;
};

bool is_blank(char32_t code) { return code == ' ' || code == '\t'; }

// Scripts written without blanks: lines may be broken after any character.
bool breaks_anywhere(char32_t code) {
  return (code >= 0x2e80 && code < 0xa000) || (code >= 0xac00 && code < 0xd7b0) ||
         (code >= 0xf900 && code < 0xfb00) || (code >= 0xff00 && code < 0xffe0) ||
         (code >= 0x20000 && code < 0x40000);
}

std::vector<RichCharacter> characters_of(const MarkdownBlock& block, std::string_view source,
                                         const RichMetrics& metrics) {
  std::vector<RichCharacter> result;
  for (const MarkdownSpan& span : block.spans) {
    const bool inserted = !span.inserted.empty();
    const std::string_view text = inserted ? std::string_view(span.inserted)
                                           : source.substr(span.begin, span.end - span.begin);
    for (size_t at = 0; at < text.size();) {
      const size_t from = at;
      RichCharacter one;
      one.code = take_character(text, at);
      one.text = text.substr(from, at - from);
      one.begin = span.begin + (inserted ? 0 : from);
      one.end = inserted ? span.end : span.begin + at;
      one.inserted = inserted ? &span : nullptr;
      one.style = span.style;
      one.width = metrics.advance(one.code, span.style);
      result.push_back(one);
    }
  }
  return result;
}

}  // namespace

char32_t take_character(std::string_view text, size_t& at) {
  constexpr char32_t kBroken = 0xfffd;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at++);
  if (lead < 0x80) return lead;
  const size_t more = lead >= 0xc2 && lead < 0xe0   ? 1
                      : lead >= 0xe0 && lead < 0xf0 ? 2
                      : lead >= 0xf0 && lead < 0xf5 ? 3
                                                    : 0;
  if (more == 0 || at + more > text.size()) return kBroken;
  char32_t character = lead & (0x3fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return kBroken;
    character = character << 6 | (byte(at + i) & 0x3f);
  }
  at += more;
  return character;
}

void RichLines::update(std::string_view source, bool markdown, float width, float version,
                       const RichMetrics& metrics) {
  if (updated_ && size_ == source.size() && markdown_ == markdown && limit_ == width &&
      version_ == version)
    return;
  layout(markdown ? parse_markdown(source) : plain_text(source), source, width, metrics);
  updated_ = true;
  size_ = source.size();
  markdown_ = markdown;
  limit_ = width;
  version_ = version;
}

void RichLines::layout(std::vector<MarkdownBlock> blocks, std::string_view source, float width,
                       const RichMetrics& metrics) {
  blocks_ = std::move(blocks);
  places_.clear();
  lines_.clear();
  widest_ = 0;
  float y = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const MarkdownBlock& block = blocks_[i];
    if (i > 0 && !block.tight) y += metrics.gap;
    const float left = std::floor(metrics.indent * static_cast<float>(block.indent + block.quotes));
    const bool code = block.kind == MarkdownBlock::Kind::kCode;
    const float padding = code ? metrics.padding : 0;
    places_.push_back({.x = left, .y = y});
    y += padding + (code ? metrics.code_heading : 0);
    if (block.kind == MarkdownBlock::Kind::kRule)
      y += metrics.gap;
    else
      wrap(i, source, left + std::floor(padding), width - left - 2 * padding, metrics, y);
    y += padding;
    places_.back().height = y - places_.back().y;
  }
  height_ = y;
}

void RichLines::wrap(size_t block, std::string_view source, float left, float room,
                     const RichMetrics& metrics, float& y) {
  const std::vector<RichCharacter> all = characters_of(blocks_[block], source, metrics);
  // Adds a line of the characters from `first` to `end`.
  const auto add_line = [&](size_t first, size_t end) {
    RichLine line{.y = y, .height = metrics.line_height(TextStyle{}), .block = block};
    float x = left, inked = left;
    for (size_t i = first; i < end; ++i) {
      const RichCharacter& one = all[i];
      const bool joins =
          !line.pieces.empty() && one.inserted == nullptr && line.pieces.back().inserted.empty() &&
          line.pieces.back().style == one.style && line.pieces.back().end == one.begin;
      if (!joins) {
        // ImGui begins text at a whole pixel.
        x = std::floor(x);
        line.pieces.push_back({.begin = one.begin, .end = one.begin, .x = x, .style = one.style});
        line.height = std::max(line.height, metrics.line_height(one.style));
      }
      RichPiece& piece = line.pieces.back();
      piece.end = one.end;
      if (one.inserted != nullptr) piece.inserted += one.text;
      x += one.width;
      piece.width = x - piece.x;
      if (!is_blank(one.code)) inked = x;
    }
    widest_ = std::max(widest_, inked);
    line.end = lines_.empty() ? 0 : lines_.back().end;
    for (const RichPiece& piece : line.pieces) line.end = std::max(line.end, piece.end);
    y += line.height;
    lines_.push_back(std::move(line));
  };

  size_t first = 0, word = 0;  // where the line and the last word begin
  float x = 0, word_x = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const RichCharacter& one = all[i];
    if (one.code == '\n') {
      add_line(first, i + 1);
      first = word = i + 1;
      x = word_x = 0;
      continue;
    }
    // Blanks may extend past the edge.
    while (x + one.width > room && i > first && !is_blank(one.code)) {
      const size_t at = word > first ? word : i;
      add_line(first, at);
      x -= at == i ? x : word_x;
      first = word = at;
      word_x = 0;
    }
    x += one.width;
    if (is_blank(one.code) || breaks_anywhere(one.code)) {
      word = i + 1;
      word_x = x;
    }
  }
  // An empty block or a final line feed still has a line.
  if (first < all.size() || all.empty() || all.back().code == '\n') add_line(first, all.size());
}

size_t RichLines::line_at(float y) const {
  const auto found = std::ranges::partition_point(
      lines_, [&](const RichLine& line) { return line.y + line.height <= y; });
  return static_cast<size_t>(found - lines_.begin());
}

std::optional<size_t> RichLines::byte_at(float x, float y, std::string_view source,
                                         const RichMetrics& metrics, bool nearest) const {
  if (lines_.empty()) return std::nullopt;
  size_t index = line_at(y);
  if (index == lines_.size() || y < lines_[index].y) {
    if (!nearest) return std::nullopt;
    if (index == lines_.size()) return source.size();
  }
  std::optional<size_t> before;
  for (const RichPiece& piece : lines_[index].pieces) {
    if (piece.begin == piece.end) continue;
    if (x < piece.x) break;
    if (x >= piece.x + piece.width) {
      before = piece.end;
      continue;
    }
    if (!piece.inserted.empty()) return piece.begin;
    const std::string_view text = piece.text(source);
    float at = piece.x;
    for (size_t i = 0; i < text.size();) {
      const size_t from = i;
      at += metrics.advance(take_character(text, i), piece.style);
      if (x < at) return piece.begin + from;
    }
    before = piece.end;
  }
  if (!nearest) return std::nullopt;
  if (before) {
    // The line feed at the end of a line is not between the mouse and the text.
    if (*before > 0 && *before <= source.size() && source[*before - 1] == '\n') --*before;
    return before;
  }
  for (const RichPiece& piece : lines_[index].pieces)
    if (piece.begin != piece.end) return piece.begin;
  return std::nullopt;
}

void RichLines::boxes(size_t begin, size_t end, std::string_view source, const RichMetrics& metrics,
                      const std::function<void(const RichBox&)>& visit) const {
  const auto first =
      std::ranges::partition_point(lines_, [&](const RichLine& line) { return line.end <= begin; });
  for (auto line = first; line != lines_.end(); ++line) {
    for (const RichPiece& piece : line->pieces) {
      if (piece.begin != piece.end && piece.begin >= end) return;
      const size_t from = std::max(begin, piece.begin), to = std::min(end, piece.end);
      if (from >= to) continue;
      float left = piece.x, right = piece.x + piece.width;
      bool blank = false;
      if (piece.inserted.empty()) {
        const std::string_view text = piece.text(source);
        float at = piece.x;
        for (size_t i = 0; i < text.size() && piece.begin + i < to;) {
          if (piece.begin + i <= from) left = at;
          at += metrics.advance(take_character(text, i), piece.style);
        }
        right = at;
        blank = source.substr(from, to - from).find_first_not_of(' ') == std::string_view::npos;
      }
      visit({left, line->y, right, line->y + line->height, blank});
    }
  }
}

}  // namespace hearth
