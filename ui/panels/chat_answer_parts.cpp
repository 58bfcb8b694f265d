// The answers of a transcript, part by part: text, folded reasoning, calls of tools.
#include <algorithm>
#include <cmath>
#include <optional>
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
    if (std::exchange(wrapped.closed, part.closed) != part.closed) wrapped.lines = {};
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
        draw_answer_text(drawn);
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

void ChatTranscript::draw_answer_text(const DrawnPart& drawn) {
  const float room = ImGui::GetContentRegionAvail().x, padding = theme_->px(kBubblePadding);
  const std::string_view text = std::string_view(drawn.exchange.reply.text)
                                    .substr(drawn.part.begin, drawn.part.end - drawn.part.begin);
  wrap_text(*theme_, drawn.lines, text, !drawn.options.show_tokens, room - 2 * padding);
  const bool code = std::ranges::any_of(drawn.lines.blocks(), [](const MarkdownBlock& block) {
    return block.kind == MarkdownBlock::Kind::kCode;
  });
  const float width =
      code ? room : std::min(room, drawn.lines.width() + 2 * padding + theme_->px(8));
  const TextBubble bubble =
      draw_bubble(*theme_, drawn.lines.height(), 0, width, style_color(ImGuiCol_FrameBg, 0.75f));
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
  wrap_text(*theme_, drawn.lines, text, !drawn.options.show_tokens,
            room - 2 * theme_->px(kBubblePadding));
  const TextBubble bubble = draw_bubble(*theme_, drawn.lines.height(), 0, room, 0);
  ImGui::GetWindowDrawList()->AddRectFilled(
      bubble.min, {bubble.min.x + theme_->px(2), bubble.max.y}, theme_->faint_color());
  draw_tokens(drawn, bubble, style_color(ImGuiCol_Text, 0.7f));
}

void ChatTranscript::draw_tokens(const DrawnPart& drawn, const TextBubble& bubble, ImU32 color) {
  const ChatReply& reply = drawn.exchange.reply;
  const RichMetrics metrics = chat_metrics(*theme_);
  const TokenRun run{
      .reply = reply,
      .token_ends = drawn.layout.token_ends,
      .begin = drawn.part.begin,
      .text = {
          drawn.lines,
          std::string_view(reply.text).substr(drawn.part.begin, drawn.part.end - drawn.part.begin),
          bubble.text, metrics, bubble.max.x - theme_->px(kBubblePadding) - bubble.text.x}};
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton(fmt::format("##answer {}", drawn.id).c_str(),
                         {bubble.max.x - bubble.min.x, bubble.height()});
  const bool by_key = ImGui::IsItemActivated() && !ImGui::IsMouseDown(ImGuiMouseButton_Left);
  const bool hovered = ImGui::IsItemHovered(), visible = ImGui::IsItemVisible();
  if (hovered && drawn.running) hovers_answer_ = true;
  const std::string key = fmt::format("{}.{}", drawn.exchange.revision, drawn.id);
  const std::optional<size_t> clicked = selection_.update(run.text, key);
  const bool dragging = ImGui::IsMouseDragging(ImGuiMouseButton_Left);
  const auto byte = hovered && !dragging ? run.text.byte_at(ImGui::GetMousePos()) : std::nullopt;
  if (visible) {
    draw_text_back(*theme_, run.text);
    shade_tokens(*theme_, run, drawn.options.show_tokens);
    selection_.draw(run.text, key);
    found_ += mark_search(*theme_, run.text, drawn.options.search);
  }
  if (byte && !reply.tokens.empty()) {
    const size_t token = run.token_with(*byte);
    const size_t from = token == 0 ? 0 : run.token_ends[token - 1], to = run.token_ends[token];
    mark_text(run.text, std::max(from, run.begin) - run.begin, std::max(to, run.begin) - run.begin,
              style_color(ImGuiCol_HeaderHovered, 0.6f));
    hovered_token_ = token_name(reply.tokens[token]);
    draw_token_tooltip(*theme_, reply, token, drawn.options.can_branch);
  }
  if (visible) draw_text(*theme_, run.text, color);
  if ((clicked || by_key) && !reply.tokens.empty()) {
    opened_ =
        Opened{.revision = drawn.exchange.revision, .token = run.token_with(clicked.value_or(0))};
    open_popup_ = true;
  }
  draw_code_buttons(*theme_, run.text, bubble.max.x - theme_->px(kBubblePadding), drawn.id);
}

void ChatTranscript::draw_call(const DrawnPart& drawn) const {
  const ChatPart& part = drawn.part;
  const float room = ImGui::GetContentRegionAvail().x, padding = theme_->px(kBubblePadding);
  const std::string title = fmt::format("{} {}", part.closed ? "Calls" : "Calling", part.name);
  const RichMetrics metrics = chat_metrics(*theme_);
  std::vector<MarkdownBlock> blocks = plain_text(part.arguments);
  blocks[0].spans[0].style.mono = true;
  drawn.lines.layout(std::move(blocks), part.arguments, std::max(1.0f, room - 2 * padding),
                     metrics);
  const float text_width =
      std::max(drawn.lines.width(), ImGui::CalcTextSize(title.c_str()).x) + theme_->px(8);
  const float width = std::min(room, text_width + 2 * padding);
  const float title_height = ImGui::GetTextLineHeightWithSpacing();
  const TextBubble bubble = draw_bubble(*theme_, title_height + drawn.lines.height(), 0, width,
                                        style_color(ImGuiCol_FrameBg, 0.4f));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRect(bubble.min, bubble.max, style_color(ImGuiCol_Border), theme_->px(kBubbleRounding), 0,
               theme_->px(1));
  draw.PushClipRect(bubble.min, bubble.max, true);
  draw.AddText(bubble.text, style_color(ImGuiCol_CheckMark), title.c_str());
  draw.PopClipRect();
  draw_text(*theme_,
            {drawn.lines,
             part.arguments,
             {bubble.text.x, std::floor(bubble.text.y + title_height)},
             metrics},
            theme_->text_color());
  ImGui::Dummy({width, bubble.height()});
  if (is_logging()) log_place(fmt::format("call {}", drawn.id), bubble.min, bubble.max);
  if (!part.warning.empty()) warning_text(*theme_, fmt::format("Note: {}.", part.warning));
}

}  // namespace hearth
