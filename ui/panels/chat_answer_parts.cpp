// The answers of a transcript, part by part: text, folded reasoning, calls of tools.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ui/panels/chat_transcript.h"
#include "ui/panels/chat_widgets.h"
#include "ui/panels/token_alternatives.h"

namespace hearth {
namespace {

constexpr float kPartGap = 4;  // between the parts of an answer, at scale 1

std::string reasoning_label(size_t tokens, bool closed) {
  const char* const plural = tokens == 1 ? "" : "s";
  return closed ? fmt::format("Thought for {} token{}", tokens, plural)
                : fmt::format("Thinking, {} token{} so far", tokens, plural);
}

}  // namespace

void ChatTranscript::draw_answer(const Chat& chat, size_t index, const TranscriptOptions& options,
                                 TranscriptAction& action) {
  const ChatExchange& exchange = chat.exchanges[index];
  const bool running = options.answering && index + 1 == chat.exchanges.size();
  ExchangeLayout& layout = layout_of(exchange);
  layout.answer.read(exchange.reply, !running);
  const std::vector<ChatPart>& parts = layout.answer.parts();
  layout.parts.resize(parts.size());
  last_answer_ = {};
  for (size_t i = 0; i < parts.size(); ++i) {
    const ChatPart& part = parts[i];
    PartLayout& wrapped = layout.parts[i];
    // The arguments of a complete call are indented.
    if (std::exchange(wrapped.closed, part.closed) != part.closed) wrapped.lines.clear();
    if (i > 0) ImGui::Dummy({0, theme_->px(kPartGap) / 2});
    const DrawnPart drawn{.exchange = exchange,
                          .part = part,
                          .layout = layout,
                          .lines = wrapped.lines,
                          .id = fmt::format("{}.{}", index, i),
                          .running = running,
                          .options = options};
    switch (part.kind) {
      case ChatPart::Kind::kText:
        draw_text(drawn);
        break;
      case ChatPart::Kind::kReasoning:
        draw_reasoning(drawn);
        break;
      case ChatPart::Kind::kCall:
        ++last_answer_.calls;
        last_answer_.last_call = part.name + part.arguments;
        draw_call(drawn);
        break;
    }
  }
  draw_reply_notes(exchange.reply, running, options);
  draw_reply_buttons(chat, index, options, action);
}

void ChatTranscript::draw_text(const DrawnPart& drawn) {
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string_view text = std::string_view(drawn.exchange.reply.text)
                                    .substr(drawn.part.begin, drawn.part.end - drawn.part.begin);
  wrap_text(drawn.lines, text, std::max(1.0f, room - 2 * theme_->px(kBubblePadding)));
  const float width =
      std::min(room, drawn.lines.width() + 2 * theme_->px(kBubblePadding) + theme_->px(8));
  const TextBubble bubble = draw_bubble(*theme_, drawn.lines.lines().size(), 0, width,
                                        style_color(ImGuiCol_FrameBg, 0.75f));
  if (drawn.running)
    ImGui::GetWindowDrawList()->AddRectFilled(
        bubble.min, {bubble.min.x + theme_->px(drawn.options.marked ? 5 : 3), bubble.max.y},
        theme_->sequence_color(drawn.options.request), theme_->px(kBubbleRounding),
        ImDrawFlags_RoundCornersLeft);
  draw_tokens(drawn, bubble, theme_->text_color());
}

void ChatTranscript::draw_reasoning(const DrawnPart& drawn) {
  const size_t tokens = tokens_in(drawn.exchange.reply, drawn.part);
  last_answer_.reasoning_tokens += tokens;
  // The part after ### is the fold's identity, which outlasts the number.
  const std::string label =
      fmt::format("{}###reasoning {}", reasoning_label(tokens, drawn.part.closed), drawn.id);
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  const bool open = ImGui::TreeNodeEx(
      label.c_str(), ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_SpanLabelWidth);
  ImGui::PopStyleColor();
  name_last_item(fmt::format("reasoning {}", drawn.id));
  ImGui::SetItemTooltip("What the model wrote before its answer. Click to %s it.",
                        open ? "fold" : "show");
  if (!open) return;
  last_answer_.unfolded = true;
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string_view text = std::string_view(drawn.exchange.reply.text)
                                    .substr(drawn.part.begin, drawn.part.end - drawn.part.begin);
  wrap_text(drawn.lines, text, std::max(1.0f, room - 2 * theme_->px(kBubblePadding)));
  const TextBubble bubble = draw_bubble(*theme_, drawn.lines.lines().size(), 0, room, 0);
  ImGui::GetWindowDrawList()->AddRectFilled(
      bubble.min, {bubble.min.x + theme_->px(2), bubble.max.y}, theme_->faint_color());
  draw_tokens(drawn, bubble, style_color(ImGuiCol_Text, 0.7f));
}

void ChatTranscript::draw_tokens(const DrawnPart& drawn, const TextBubble& bubble, ImU32 color) {
  const ChatReply& reply = drawn.exchange.reply;
  const TokenRun run{.reply = reply,
                     .token_ends = drawn.layout.token_ends,
                     .begin = drawn.part.begin,
                     .end = drawn.part.end,
                     .lines = drawn.lines,
                     .bubble = bubble};
  ImGui::InvisibleButton(fmt::format("##answer {}", drawn.id).c_str(),
                         {bubble.max.x - bubble.min.x, bubble.height()});
  const bool clicked = ImGui::IsItemClicked(ImGuiMouseButton_Left);
  const bool by_key = ImGui::IsItemActivated() && !clicked;
  const bool hovered = ImGui::IsItemHovered();
  if (hovered && drawn.running) hovers_answer_ = true;
  const auto token = hovered ? token_at(*theme_, run, ImGui::GetMousePos()) : std::nullopt;
  if (ImGui::IsItemVisible()) shade_tokens(*theme_, run, drawn.options.show_tokens);
  if (token) {
    ImGui::GetWindowDrawList()->AddRectFilled(
        token->min, token->max, style_color(ImGuiCol_HeaderHovered, 0.6f), theme_->px(2));
    hovered_token_ = token_name(reply.tokens[token->token]);
    draw_token_tooltip(*theme_, reply, token->token);
  }
  draw_lines(drawn.lines, run.text(), bubble, color);
  if ((token && clicked) || (by_key && !reply.tokens.empty())) {
    opened_ = Opened{.revision = drawn.exchange.revision,
                     .token = token ? token->token : first_token(run)};
    open_popup_ = true;
  }
}

void ChatTranscript::draw_call(const DrawnPart& drawn) const {
  const ChatPart& part = drawn.part;
  const float room = ImGui::GetContentRegionAvail().x, padding = theme_->px(kBubblePadding);
  const std::string title = fmt::format("{} {}", part.closed ? "Calls" : "Calling", part.name);
  wrap_text(drawn.lines, part.arguments, std::max(1.0f, room - 2 * padding));
  const float text_width =
      std::max(drawn.lines.width(), ImGui::CalcTextSize(title.c_str()).x) + theme_->px(8);
  const float width = std::min(room, text_width + 2 * padding);
  const TextBubble bubble = draw_bubble(*theme_, 1 + drawn.lines.lines().size(), 0, width,
                                        style_color(ImGuiCol_FrameBg, 0.4f));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRect(bubble.min, bubble.max, style_color(ImGuiCol_Border), theme_->px(kBubbleRounding), 0,
               theme_->px(1));
  draw.PushClipRect(bubble.min, bubble.max, true);
  draw.AddText(bubble.text, style_color(ImGuiCol_CheckMark), title.c_str());
  draw.PopClipRect();
  draw_lines(drawn.lines, part.arguments, bubble, theme_->text_color(), 1);
  ImGui::Dummy({width, bubble.height()});
  if (is_logging()) log_place(fmt::format("call {}", drawn.id), bubble.min, bubble.max);
  if (!part.warning.empty()) warning_text(*theme_, fmt::format("Note: {}.", part.warning));
}

}  // namespace hearth
