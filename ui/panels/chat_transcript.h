// The messages of a conversation, drawn token by token: which token is under the mouse, what else
// could have stood there, and what somebody wants done. Draws and measures, changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <imgui.h>

#include "ui/data/chat.h"
#include "ui/data/chat_lines.h"
#include "ui/theme.h"

namespace hearth {

struct TranscriptAction {
  enum class Kind : uint8_t { kNone, kRegenerate, kContinue, kEditQuestion, kBranch };
  Kind kind = Kind::kNone;
  size_t exchange = 0, token = 0;
  ChatAlternative alternative;
  std::string question;
};

struct TranscriptOptions {
  bool answering = false;
  double answer_seconds = 0;  // since the question
  RequestId request = 0;      // that answers
  bool marked = false;        // is what the shared selection points at
  bool can_ask = false;       // there is a model to answer
  bool can_continue = false;
  bool show_tokens = false;
};

class ChatTranscript {
 public:
  // In the current window, whose scrolling follows the end until somebody scrolls up.
  TranscriptAction draw(const Chat& chat, const TranscriptOptions& options, const Theme& theme);
  // The end is shown in the next frame, wherever one had scrolled.
  void scroll_to_end() { frames_to_end_ = 2; }
  // What is being changed is forgotten.
  void stop_editing() { editing_.reset(); }
  bool hovers_answer() const { return hovers_answer_; }
  // The text of the token under the mouse; empty: none.
  const std::string& hovered_token() const { return hovered_token_; }

 private:
  // What is known of an exchange's looks.
  struct ExchangeLayout {
    ChatLines question, reply;
    std::vector<size_t> token_ends;  // in the reply's text
    std::uint64_t last_frame = 0;
  };
  struct Bubble {
    ImVec2 min, text, max;
    float line_height = 0;
  };
  struct TokenPlace {
    size_t token = 0;
    bool is_blank = false;  // the blank before a word that is on the next line
    ImVec2 min, max;
  };
  struct Editing {
    std::uint64_t revision = 0;
    std::string text;
    bool focus = true;
  };
  struct Opened {
    std::uint64_t revision = 0;
    size_t token = 0;
  };

  ExchangeLayout& layout_of(const ChatExchange& exchange);
  void lay_out(ChatLines& lines, std::string_view text, float width) const;
  Bubble draw_bubble(const ChatLines& lines, float left, float width, ImU32 color) const;
  void draw_lines(const ChatLines& lines, std::string_view text, const Bubble& bubble) const;

  void draw_question(const Chat& chat, size_t index, const TranscriptOptions& options,
                     TranscriptAction& action);
  void draw_editor(size_t index, TranscriptAction& action);
  void draw_reply(const Chat& chat, size_t index, const TranscriptOptions& options,
                  TranscriptAction& action);
  void draw_reply_notes(const ChatReply& reply, bool running, const TranscriptOptions& options);
  void draw_reply_buttons(const Chat& chat, size_t index, const TranscriptOptions& options,
                          TranscriptAction& action);
  // Every token's place in a line.
  template <class Visit>
  void visit_line(const ChatReply& reply, const ExchangeLayout& layout, const Bubble& bubble,
                  size_t line, Visit visit) const;
  std::optional<TokenPlace> token_at(const ChatReply& reply, const ExchangeLayout& layout,
                                     const Bubble& bubble, ImVec2 place) const;
  void shade_tokens(const ChatReply& reply, const ExchangeLayout& layout, const Bubble& bubble,
                    bool all) const;
  void draw_tooltip(const ChatReply& reply, size_t token) const;
  void draw_popup(const Chat& chat, const TranscriptOptions& options, TranscriptAction& action);
  void drop_old();

  const Theme* theme_ = nullptr;                               // while drawing
  std::unordered_map<std::uint64_t, ExchangeLayout> layouts_;  // by revision
  float font_size_ = 0;
  std::uint64_t frame_ = 0;
  int frames_to_end_ = 0;
  std::optional<Editing> editing_;
  std::optional<Opened> opened_;
  bool open_popup_ = false;
  bool hovers_answer_ = false;
  std::string hovered_token_;
};

// Behind a token of this probability: the less likely, the stronger.
ImU32 token_color(const Theme& theme, float probability);
// Rows of what else could stand at a token; the index of the one that was clicked.
std::optional<size_t> draw_alternatives(const Theme& theme, const ChatToken& token, bool buttons,
                                        bool enabled);

}  // namespace hearth
