// Draws the messages of a conversation token by token: finds the token under the mouse, shows its
// alternatives, and returns what the user wants done. Never changes the conversation.
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
  double answer_seconds = 0;  // since the request was submitted
  RequestId request = 0;      // generates the answer; 0: none
  bool marked = false;        // the request is marked in all panels
  bool can_ask = false;       // there is a model that can answer
  bool can_continue = false;
  bool show_tokens = false;
};

class ChatTranscript {
 public:
  // Draws into the current window, which stays scrolled to the end until the user scrolls up.
  TranscriptAction draw(const Chat& chat, const TranscriptOptions& options, const Theme& theme);
  // Scrolls to the end in the next frames.
  void scroll_to_end() { frames_to_end_ = 2; }
  // Discards the edit of a question.
  void stop_editing() { editing_.reset(); }
  bool hovers_answer() const { return hovers_answer_; }
  // The text of the token under the mouse; empty if there is none.
  const std::string& hovered_token() const { return hovered_token_; }

 private:
  // The cached layout of an exchange.
  struct ExchangeLayout {
    ChatLines question, reply;
    std::vector<size_t> token_ends;  // byte offsets in the reply's text
    std::uint64_t last_frame = 0;
  };
  struct Bubble {
    ImVec2 min, text, max;
    float line_height = 0;
  };
  struct TokenPlace {
    size_t token = 0;
    bool is_blank = false;  // only the blank of a word that is on the next line
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
  // Calls visit(TokenPlace) for every token of a line.
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

  const Theme* theme_ = nullptr;                               // valid while drawing
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

// The background of a token: the less likely it is, the stronger the colour.
ImU32 token_color(const Theme& theme, float probability);
// Draws one row per alternative and returns the index of the clicked one.
std::optional<size_t> draw_alternatives(const Theme& theme, const ChatToken& token, bool buttons,
                                        bool enabled);

}  // namespace hearth
