#include "tools/chat/character_width.h"

#include <utf8proc.h>

namespace hearth {
namespace {

constexpr char32_t kJoiner = 0x200d;             // makes one emoji of two
constexpr char32_t kEmojiPresentation = 0xfe0f;  // widens the character before it

bool is_closing(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

bool is_opening(char32_t character) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return category == UTF8PROC_CATEGORY_PS || category == UTF8PROC_CATEGORY_PI;
}

}  // namespace

uint32_t character_width(char32_t character) {
  if (character == kEmojiPresentation) return 1;
  const int width = utf8proc_charwidth(static_cast<utf8proc_int32_t>(character));
  return width > 0 ? static_cast<uint32_t>(width) : 0;
}

bool may_break_between(char32_t left, char32_t right) {
  if (character_width(left) < 2 && character_width(right) < 2) return false;
  if (left == kJoiner || is_opening(left) || is_closing(right)) return false;
  return utf8proc_grapheme_break(static_cast<utf8proc_int32_t>(left),
                                 static_cast<utf8proc_int32_t>(right));
}

}  // namespace hearth
