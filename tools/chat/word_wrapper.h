// Breaks text between words at the right edge of a terminal while it streams in. The word that is
// being spelled is held back until it is complete, or until show_held() is called because the next
// token takes a while; a word that was shown too early and then does not fit is erased and moved to
// the next line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hearth {

class WordWrapper {
 public:
  // `columns` is asked again with every piece of text, because a terminal can be resized; 0 means
  // that there is none: text is passed on as it comes.
  WordWrapper(std::function<uint32_t()> columns, std::function<void(std::string_view)> write);

  // REQUIRES: whole UTF-8 characters.
  void add(std::string_view text);
  // Writes what is held back.
  void show_held();
  // Ends the text and its line.
  void end();

 private:
  void add_character(std::string_view bytes, char32_t character);
  void add_space(char space);
  void end_word();
  void break_line();
  void move_shown();
  bool word_fits() const { return start_ + word_width_ <= columns_; }

  std::function<uint32_t()> columns_of_terminal_;
  std::function<void(std::string_view)> write_;
  uint32_t columns_ = 0;
  uint32_t column_ = 0;          // where the cursor is
  bool first_on_line_ = true;    // no word before the current one
  std::string spaces_;           // before the word, held back as well
  uint32_t start_ = 0;           // the column after them, where the word begins
  std::string word_;             // the current word
  uint32_t word_width_ = 0;      // in columns
  size_t shown_bytes_ = 0;       // of the word, on the terminal already
  char32_t last_character_ = 0;  // of the word
};

// Text in lines of at most `columns`; 0: as it is.
std::string wrap_words(std::string_view text, uint32_t columns);

}  // namespace hearth
