// Draws the messages of a conversation: answers as Markdown, with reasoning folded and calls of
// tools in boxes. Text can be selected. Finds the token under the mouse, shows its alternatives,
// and returns what the user wants done. Never changes the conversation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <imgui.h>

#include "ui/data/chat.h"
#include "ui/data/chat_parts.h"
#include "ui/data/rich_lines.h"
#include "ui/data/soft_wrap.h"
#include "ui/panels/chat_text.h"
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
  bool can_branch = true;    // not on a server, which cannot continue an answer
  bool show_tokens = false;  // boxes around tokens, in the text as the model wrote it
  std::string search;        // marked wherever it occurs; empty: nothing
};

// What an answer has besides its text.
struct AnswerSummary {
  size_t reasoning_tokens = 0;
  bool unfolded = false;  // some of the reasoning is shown
  size_t calls = 0;
  std::string last_call;  // the name and the arguments as shown
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
  // The text that the user has selected.
  const std::string& selected() const { return selection_.selected(); }
  // How often the search occurs in what was drawn last.
  size_t found() const { return found_; }
  // Of the last answer that was drawn.
  const AnswerSummary& last_answer() const { return last_answer_; }

 private:
  struct PartLayout {
    RichLines lines;
    bool closed = false;  // as the part was when it was wrapped
  };
  // The cached layout of an exchange.
  struct ExchangeLayout {
    RichLines question;
    ChatParts answer;
    std::vector<PartLayout> parts;   // of the answer
    std::vector<size_t> token_ends;  // byte offsets in the answer's text
    std::uint64_t last_frame = 0;
  };
  struct Editing {
    std::uint64_t revision = 0;
    std::string text;
    SoftWrap wrap;
    bool focus = true;
  };
  struct Opened {
    std::uint64_t revision = 0;
    size_t token = 0;
  };
  // One part of an answer, as it is drawn.
  struct DrawnPart {
    const ChatExchange& exchange;
    const ChatPart& part;
    ExchangeLayout& layout;
    RichLines& lines;
    std::string id;  // unique in the window
    bool running = false;
    const TranscriptOptions& options;
  };

  ExchangeLayout& layout_of(const ChatExchange& exchange);
  void draw_question(const Chat& chat, size_t index, const TranscriptOptions& options,
                     TranscriptAction& action);
  void draw_editor(size_t index, TranscriptAction& action);
  void draw_answer(const Chat& chat, size_t index, const TranscriptOptions& options,
                   TranscriptAction& action);
  void draw_answer_text(const DrawnPart& drawn);
  void draw_reasoning(const DrawnPart& drawn);
  void draw_call(const DrawnPart& drawn) const;
  // The tokens of a part, in its bubble: shading, the tooltip, the popup.
  void draw_tokens(const DrawnPart& drawn, const TextBubble& bubble, ImU32 color);
  void draw_reply_notes(const ChatReply& reply, bool running, const TranscriptOptions& options);
  void draw_reply_buttons(const Chat& chat, size_t index, const TranscriptOptions& options,
                          TranscriptAction& action);
  void draw_popup(const Chat& chat, const TranscriptOptions& options, TranscriptAction& action);
  void drop_old();

  const Theme* theme_ = nullptr;                               // valid while drawing
  std::unordered_map<std::uint64_t, ExchangeLayout> layouts_;  // by revision
  float font_size_ = 0;
  TextSelection selection_;
  size_t found_ = 0;
  std::uint64_t frame_ = 0;
  int frames_to_end_ = 0;
  std::optional<Editing> editing_;
  std::optional<Opened> opened_;
  bool open_popup_ = false;
  bool hovers_answer_ = false;
  std::string hovered_token_;
  AnswerSummary last_answer_;
};

}  // namespace hearth
