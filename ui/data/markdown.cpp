#include "ui/data/markdown.h"

#include <algorithm>
#include <utility>

#ifdef HEARTH_HAS_MD4C
#include <md4c.h>
#endif

namespace hearth {
namespace {

#ifdef HEARTH_HAS_MD4C

// The entities that models write; others stay as they are.
std::string decoded_entity(std::string_view entity) {
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&amp;", "&"},        {"&lt;", "<"},         {"&gt;", ">"},
      {"&quot;", "\""},      {"&apos;", "'"},       {"&nbsp;", "\u00a0"},
      {"&ndash;", "\u2013"}, {"&mdash;", "\u2014"}, {"&times;", "\u00d7"}};
  for (const auto& [name, text] : kEntities)
    if (entity == name) return std::string(text);
  return std::string(entity);
}

// Builds blocks from md4c's events.
class MarkdownReader {
 public:
  explicit MarkdownReader(std::string_view source) : source_(source) {}

  std::vector<MarkdownBlock> read() {
    MD_PARSER parser = {};
    parser.flags = MD_FLAG_NOHTML | MD_FLAG_NOINDENTEDCODEBLOCKS | MD_FLAG_STRIKETHROUGH;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
      static_cast<MarkdownReader*>(self)->enter(type, detail);
      return 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) {
      static_cast<MarkdownReader*>(self)->leave(type);
      return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void*, void* self) {
      static_cast<MarkdownReader*>(self)->style(type, 1);
      return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* self) {
      static_cast<MarkdownReader*>(self)->style(type, -1);
      return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* self) {
      static_cast<MarkdownReader*>(self)->add(type, {text, size});
      return 0;
    };
    if (md_parse(source_.data(), static_cast<MD_SIZE>(source_.size()), &parser, this) != 0)
      return plain_text(source_);
    return std::move(blocks_);
  }

 private:
  struct List {
    bool ordered = false, tight = false;
    unsigned next = 1;
  };

  MarkdownBlock& begin(MarkdownBlock::Kind kind) {
    MarkdownBlock block{.kind = kind};
    block.indent = static_cast<uint8_t>(std::min<size_t>(lists_.size(), 8));
    block.quotes = static_cast<uint8_t>(std::min(quotes_, 8));
    block.tight = !lists_.empty() && lists_.back().tight && blocks_.size() > list_start_;
    block.marker = std::exchange(marker_, {});
    blocks_.push_back(std::move(block));
    open_ = true;
    return blocks_.back();
  }

  void enter(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_QUOTE:
        ++quotes_;
        break;
      case MD_BLOCK_UL:
        open_ = false;
        if (lists_.empty()) list_start_ = blocks_.size();
        lists_.push_back({.tight = static_cast<MD_BLOCK_UL_DETAIL*>(detail)->is_tight != 0});
        break;
      case MD_BLOCK_OL: {
        open_ = false;
        if (lists_.empty()) list_start_ = blocks_.size();
        const auto* list = static_cast<MD_BLOCK_OL_DETAIL*>(detail);
        lists_.push_back({.ordered = true, .tight = list->is_tight != 0, .next = list->start});
        break;
      }
      case MD_BLOCK_LI:
        open_ = false;
        marker_ = lists_.empty()          ? std::string()
                  : lists_.back().ordered ? std::to_string(lists_.back().next++) + "."
                                          : "\u2022";
        break;
      case MD_BLOCK_H:
        heading_ = static_cast<uint8_t>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
        begin(MarkdownBlock::Kind::kText);
        break;
      case MD_BLOCK_CODE: {
        const MD_ATTRIBUTE& language = static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->lang;
        begin(MarkdownBlock::Kind::kCode)
            .language.assign(language.text ? language.text : "", language.size);
        break;
      }
      case MD_BLOCK_HR:
        begin(MarkdownBlock::Kind::kRule);
        open_ = false;
        break;
      case MD_BLOCK_P:
        begin(MarkdownBlock::Kind::kText);
        break;
      default:
        break;
    }
  }

  void leave(MD_BLOCKTYPE type) {
    open_ = false;
    if (type == MD_BLOCK_QUOTE) --quotes_;
    if ((type == MD_BLOCK_UL || type == MD_BLOCK_OL) && !lists_.empty()) lists_.pop_back();
    if (type == MD_BLOCK_H) heading_ = 0;
    if (type != MD_BLOCK_CODE || blocks_.empty()) return;
    // The last line feed ends the block's last line.
    std::vector<MarkdownSpan>& spans = blocks_.back().spans;
    if (!spans.empty() && spans.back().inserted == "\n") spans.pop_back();
  }

  void style(MD_SPANTYPE type, int change) {
    if (type == MD_SPAN_STRONG) bold_ += change;
    if (type == MD_SPAN_EM) italic_ += change;
    if (type == MD_SPAN_CODE) mono_ += change;
    if (type == MD_SPAN_A) link_ += change;
    if (type == MD_SPAN_DEL) struck_ += change;
  }

  void add(MD_TEXTTYPE type, std::string_view text) {
    // The items of a tight list have no paragraphs.
    if (!open_) begin(MarkdownBlock::Kind::kText);
    MarkdownBlock& block = blocks_.back();
    const bool code = block.kind == MarkdownBlock::Kind::kCode;
    MarkdownSpan span{.style = {.bold = bold_ > 0 || heading_ > 0,
                                .italic = italic_ > 0,
                                .mono = mono_ > 0 || code,
                                .link = link_ > 0,
                                .struck = struck_ > 0,
                                .heading = heading_}};
    const bool in_source = text.data() >= source_.data() &&
                           text.data() + text.size() <= source_.data() + source_.size();
    if (in_source) {
      span.begin = static_cast<size_t>(text.data() - source_.data());
      span.end = span.begin + text.size();
    }
    if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR)
      span.inserted = "\n";
    else if (type == MD_TEXT_ENTITY)
      span.inserted = decoded_entity(text);
    else if (type == MD_TEXT_NULLCHAR)
      span.inserted = "\ufffd";
    else if (!in_source)
      span.inserted = text;
    if (span.inserted.empty() && span.begin == span.end) return;
    block.spans.push_back(std::move(span));
  }

  std::string_view source_;
  std::vector<MarkdownBlock> blocks_;
  std::vector<List> lists_;
  size_t list_start_ = 0;  // the first block of the outermost list
  std::string marker_;
  int quotes_ = 0, bold_ = 0, italic_ = 0, mono_ = 0, link_ = 0, struck_ = 0;
  uint8_t heading_ = 0;
  bool open_ = false;  // text belongs to the last block
};

#endif

}  // namespace

bool has_markdown() {
#ifdef HEARTH_HAS_MD4C
  return true;
#else
  return false;
#endif
}

std::vector<MarkdownBlock> parse_markdown(std::string_view source) {
#ifdef HEARTH_HAS_MD4C
  return MarkdownReader(source).read();
#else
  return plain_text(source);
#endif
}

std::vector<MarkdownBlock> plain_text(std::string_view source) {
  MarkdownBlock block;
  block.spans.push_back({.begin = 0, .end = source.size()});
  return {std::move(block)};
}

std::string code_text(const MarkdownBlock& block, std::string_view source) {
  std::string text;
  for (const MarkdownSpan& span : block.spans) {
    if (span.inserted.empty())
      text += source.substr(span.begin, span.end - span.begin);
    else
      text += span.inserted;
  }
  return text;
}

}  // namespace hearth
