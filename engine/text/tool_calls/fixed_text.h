// Fixed texts of grammars in Lark's format. Where a text has a control token of the model, the
// grammar names the token: its text alone would be other tokens, which the model does not expect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

struct ControlText {
  std::string text;  // not empty
  std::uint32_t id = 0;
};

struct FixedText {
  std::span<const ControlText> control = {};

  // As an expression. Empty for an empty text.
  std::string operator()(std::string_view text) const;
  // The same with any white space where the text has a line break.
  std::string loose(std::string_view text) const;
  // Whether a control token is part of the text.
  bool has_control(std::string_view text) const;
  // Any text that the fixed one follows, without it. Both together as an expression.
  std::string text_before(std::string_view text) const;

 private:
  std::string expression(std::string_view text, bool loose) const;
};

}  // namespace hearth
