#include "ui/panels/chat_transcript.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

constexpr float kPadding = 9;  // inside a bubble, at scale 1
constexpr float kRounding = 8;
constexpr float kBubbleGap = 6;          // below a bubble
constexpr float kQuestionShare = 0.86f;  // maximum, as a fraction of the width
constexpr float kLineFeedWidth = 6;      // so that the mouse can point at a line feed
constexpr size_t kMaxLayouts = 512;

// One decimal for large values, two for small ones.
std::string percent(float probability) {
  const double value = double{probability} * 100;
  if (value >= 9.995) return fmt::format("{:.1f} %", value);
  return value >= 0.01 ? fmt::format("{:.2f} %", value) : std::string("< 0.01 %");
}

std::string token_name(const ChatToken& token) {
  for (const ChatAlternative& one : token.alternatives)
    if (one.id == token.id) return one.text;
  return token.text.empty() ? fmt::format("token {}", token.id) : token.text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

ImU32 token_color(const Theme& theme, float probability) {
  const ImVec4 sure = ImGui::ColorConvertU32ToFloat4(style_color(ImGuiCol_FrameBgHovered, 0.45f));
  const ImVec4 doubtful =
      ImGui::ColorConvertU32ToFloat4(with_opacity(theme.warning_color(), 0.55f));
  const auto mix = [&](float a, float b) { return b + (a - b) * probability; };
  return ImGui::ColorConvertFloat4ToU32({mix(sure.x, doubtful.x), mix(sure.y, doubtful.y),
                                         mix(sure.z, doubtful.z), mix(sure.w, doubtful.w)});
}

std::optional<size_t> draw_alternatives(const Theme& theme, const ChatToken& token, bool buttons,
                                        bool enabled) {
  std::optional<size_t> clicked;
  const float number = ImGui::CalcTextSize("< 0.01 %  ").x;
  const float bar = theme.px(70);
  float name = theme.px(60);
  for (const ChatAlternative& one : token.alternatives)
    name = std::max(name, ImGui::CalcTextSize(quoted(one.text).c_str()).x + theme.px(16));
  for (size_t i = 0; i < token.alternatives.size(); ++i) {
    const ChatAlternative& one = token.alternatives[i];
    const bool chosen = one.id == token.id;
    const std::string label = quoted(one.text);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    if (buttons) {
      ImGui::BeginDisabled(chosen || !enabled);
      ImGui::PushID(static_cast<int>(i));
      if (ImGui::Selectable("##alternative", chosen, 0, {name + bar + number, height})) clicked = i;
      name_last_item(fmt::format("alternative {}", i + 1));
      ImGui::PopID();
      ImGui::EndDisabled();
    } else {
      ImGui::Dummy({name + bar + number, height});
    }
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddText(corner, chosen ? theme.text_color() : style_color(ImGuiCol_Text, 0.8f),
                 label.c_str());
    const ImVec2 from{corner.x + name, corner.y + height * 0.2f};
    draw.AddRectFilled(from, {from.x + bar, corner.y + height * 0.8f},
                       style_color(ImGuiCol_FrameBg), theme.px(2));
    draw.AddRectFilled(
        from, {from.x + std::max(theme.px(1), bar * one.probability), corner.y + height * 0.8f},
        style_color(chosen ? ImGuiCol_PlotHistogram : ImGuiCol_SliderGrab), theme.px(2));
    const std::string value = percent(one.probability);
    draw.AddText({corner.x + name + bar + number - ImGui::CalcTextSize(value.c_str()).x, corner.y},
                 theme.text_color(), value.c_str());
  }
  return clicked;
}

ChatTranscript::ExchangeLayout& ChatTranscript::layout_of(const ChatExchange& exchange) {
  ExchangeLayout& found = layouts_[exchange.revision];
  found.last_frame = frame_;
  size_t end = found.token_ends.empty() ? 0 : found.token_ends.back();
  for (size_t i = found.token_ends.size(); i < exchange.reply.tokens.size(); ++i)
    found.token_ends.push_back(end += exchange.reply.tokens[i].text.size());
  return found;
}

void ChatTranscript::drop_old() {
  if (layouts_.size() <= kMaxLayouts) return;
  std::erase_if(layouts_, [&](const auto& entry) { return entry.second.last_frame != frame_; });
}

void ChatTranscript::lay_out(ChatLines& lines, std::string_view text, float width) const {
  ImFontBaked* const font = ImGui::GetFontBaked();
  const float scale = ImGui::GetFontSize() / font->Size;
  lines.layout(text, width, [&](char32_t character) {
    return scale * font->GetCharAdvance(static_cast<ImWchar>(character));
  });
}

ChatTranscript::Bubble ChatTranscript::draw_bubble(const ChatLines& lines, float left, float width,
                                                   ImU32 color) const {
  const float padding = theme_->px(kPadding), line = ImGui::GetTextLineHeightWithSpacing();
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  Bubble bubble;
  bubble.line_height = line;
  bubble.min = {corner.x + left, corner.y};
  bubble.text = {bubble.min.x + padding, bubble.min.y + padding * 0.7f};
  bubble.max = {bubble.min.x + width, bubble.min.y + 1.4f * padding +
                                          line * static_cast<float>(lines.lines().size()) -
                                          ImGui::GetStyle().ItemSpacing.y};
  ImGui::GetWindowDrawList()->AddRectFilled(bubble.min, bubble.max, color, theme_->px(kRounding));
  return bubble;
}

void ChatTranscript::draw_lines(const ChatLines& lines, std::string_view text,
                                const Bubble& bubble) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float top = draw.GetClipRectMin().y, bottom = draw.GetClipRectMax().y;
  const auto first =
      static_cast<size_t>(std::max(0.0f, std::floor((top - bubble.text.y) / bubble.line_height)));
  for (size_t i = first; i < lines.lines().size(); ++i) {
    const float y = bubble.text.y + bubble.line_height * static_cast<float>(i);
    if (y > bottom) break;
    const ChatLines::Line& line = lines.lines()[i];
    if (line.end > line.begin)
      draw.AddText({bubble.text.x, y}, theme_->text_color(), text.data() + line.begin,
                   text.data() + line.end);
  }
}

template <class Visit>
void ChatTranscript::visit_line(const ChatReply& reply, const ExchangeLayout& layout,
                                const Bubble& bubble, size_t line, Visit visit) const {
  const auto& lines = layout.reply.lines();
  const size_t begin = lines[line].begin;
  // The line feed belongs to the line.
  const size_t end = line + 1 < lines.size() ? lines[line + 1].begin : reply.text.size();
  float x = bubble.text.x;
  const float y = bubble.text.y + bubble.line_height * static_cast<float>(line);
  const auto first = std::ranges::upper_bound(layout.token_ends, begin);
  for (auto token = static_cast<size_t>(first - layout.token_ends.begin());
       token < layout.token_ends.size(); ++token) {
    const size_t from = std::max(begin, token == 0 ? 0 : layout.token_ends[token - 1]);
    const size_t to = std::min(end, layout.token_ends[token]);
    if (from >= end) break;
    const char* const text = reply.text.data();
    const size_t ink = std::min(to, std::max(from, lines[line].end));
    float width = ImGui::CalcTextSize(text + from, text + ink).x;
    if (to > ink) width += theme_->px(kLineFeedWidth);
    const bool is_blank =
        layout.token_ends[token] > to && reply.text.find_first_not_of(' ', from) >= to;
    if (from < to)
      visit(TokenPlace{.token = token,
                       .is_blank = is_blank,
                       .min = {x, y},
                       .max = {x + width, y + ImGui::GetTextLineHeight()}});
    x += width;
  }
}

std::optional<ChatTranscript::TokenPlace> ChatTranscript::token_at(const ChatReply& reply,
                                                                   const ExchangeLayout& layout,
                                                                   const Bubble& bubble,
                                                                   ImVec2 place) const {
  const float row = (place.y - bubble.text.y) / bubble.line_height;
  if (row < 0 || row >= static_cast<float>(layout.reply.lines().size())) return std::nullopt;
  std::optional<TokenPlace> found;
  visit_line(reply, layout, bubble, static_cast<size_t>(row), [&](const TokenPlace& token) {
    if (place.x >= token.min.x && place.x < token.max.x) found = token;
  });
  return found;
}

void ChatTranscript::shade_tokens(const ChatReply& reply, const ExchangeLayout& layout,
                                  const Bubble& bubble, bool all) const {
  if (!all && reply.kept_tokens == 0 && !is_logging()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float top = draw.GetClipRectMin().y, bottom = draw.GetClipRectMax().y;
  const auto first =
      static_cast<size_t>(std::max(0.0f, std::floor((top - bubble.text.y) / bubble.line_height)));
  for (size_t line = first; line < layout.reply.lines().size(); ++line) {
    if (bubble.text.y + bubble.line_height * static_cast<float>(line) > bottom) break;
    visit_line(reply, layout, bubble, line, [&](const TokenPlace& place) {
      const ChatToken& token = reply.tokens[place.token];
      const ImVec2 to{place.max.x - theme_->px(1), place.max.y};
      const float rounding = theme_->px(2);
      if (place.is_blank) return;
      if (all) draw.AddRectFilled(place.min, to, token_color(*theme_, token.probability), rounding);
      // Marks the token at which the branch was made.
      if (reply.kept_tokens > 0 && place.token + 1 == reply.kept_tokens)
        draw.AddRect(place.min, to, style_color(ImGuiCol_CheckMark), rounding, 0, theme_->px(1));
      if (is_logging()) log_place(fmt::format("token {}", place.token), place.min, place.max);
    });
  }
}

void ChatTranscript::draw_tooltip(const ChatReply& reply, size_t token) const {
  // Includes preceding tokens that are parts of the same character.
  size_t first = token;
  while (first > 0 && reply.tokens[first - 1].text.empty()) --first;
  ImGui::BeginTooltip();
  for (size_t i = first; i <= token; ++i) {
    const ChatToken& one = reply.tokens[i];
    const bool kept = i < reply.kept_tokens;
    ImGui::Text("%s   %s%s", quoted(token_name(one)).c_str(), percent(one.probability).c_str(),
                kept ? ", kept" : "");
    if (i == token) {
      ImGui::Separator();
      draw_alternatives(*theme_, one, /*buttons=*/false, /*enabled=*/false);
    }
  }
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  ImGui::Text("Token %zu of %zu. Click to branch to another token.", token + 1,
              reply.tokens.size());
  ImGui::PopStyleColor();
  ImGui::EndTooltip();
}

void ChatTranscript::draw_popup(const Chat& chat, const TranscriptOptions& options,
                                TranscriptAction& action) {
  constexpr const char* kPopup = "Alternatives";
  if (open_popup_) ImGui::OpenPopup(kPopup);
  open_popup_ = false;
  if (!opened_) return;
  const auto exchange =
      std::ranges::find(chat.exchanges, opened_->revision, &ChatExchange::revision);
  if (exchange == chat.exchanges.end() || opened_->token >= exchange->reply.tokens.size()) {
    opened_.reset();
    return;
  }
  if (!ImGui::BeginPopup(kPopup)) return;
  const ChatReply& reply = exchange->reply;
  const ChatToken& token = reply.tokens[opened_->token];
  ImGui::BeginDisabled(opened_->token == 0);
  if (ImGui::ArrowButton("##token before", ImGuiDir_Left)) --opened_->token;
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(opened_->token + 1 >= reply.tokens.size());
  if (ImGui::ArrowButton("##token after", ImGuiDir_Right)) ++opened_->token;
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  ImGui::Text("%s  token %zu", quoted(token_name(token)).c_str(), opened_->token + 1);
  ImGui::Separator();
  const auto clicked = draw_alternatives(*theme_, token, /*buttons=*/true, options.can_ask);
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  ImGui::TextUnformatted(options.can_ask ? "Continues in a new tab that shares the KV blocks."
                                         : "There is no model to continue with.");
  ImGui::PopStyleColor();
  if (clicked) {
    action.kind = TranscriptAction::Kind::kBranch;
    action.exchange = static_cast<size_t>(exchange - chat.exchanges.begin());
    action.token = opened_->token;
    action.alternative = token.alternatives[*clicked];
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndPopup();
}

void ChatTranscript::draw_editor(size_t index, TranscriptAction& action) {
  ImGui::PushID(static_cast<int>(index));
  const float lines =
      static_cast<float>(std::clamp<long>(std::ranges::count(editing_->text, '\n') + 1, 3, 10));
  if (std::exchange(editing_->focus, false)) ImGui::SetKeyboardFocusHere();
  const MessageBox box =
      message_box("##question", editing_->text,
                  {-FLT_MIN, lines * ImGui::GetTextLineHeight() + theme_->px(10)}, nullptr);
  const bool resend = ImGui::SmallButton("Resend");
  ImGui::SetItemTooltip("Send the edited question and discard what follows it (Enter).");
  ImGui::SameLine();
  const bool cancel =
      ImGui::SmallButton("Cancel edit") || (!box.active && ImGui::IsKeyPressed(ImGuiKey_Escape));
  if ((resend || box.entered) && editing_->text.find_first_not_of(" \t\n") != std::string::npos) {
    action.kind = TranscriptAction::Kind::kEditQuestion;
    action.exchange = index;
    action.question = editing_->text;
    editing_.reset();
  } else if (cancel) {
    editing_.reset();
  }
  ImGui::PopID();
}

void ChatTranscript::draw_question(const Chat& chat, size_t index, const TranscriptOptions& options,
                                   TranscriptAction& action) {
  const ChatExchange& exchange = chat.exchanges[index];
  if (editing_ && editing_->revision == exchange.revision) return draw_editor(index, action);
  const float room = ImGui::GetContentRegionAvail().x;
  const float padding = theme_->px(kPadding);
  ChatLines& lines = layout_of(exchange).question;
  lay_out(lines, exchange.question, std::max(1.0f, room * kQuestionShare - 2 * padding));
  const float width = std::min(room, lines.width() + 2 * padding + 1);
  const Bubble bubble =
      draw_bubble(lines, room - width, width, style_color(ImGuiCol_HeaderHovered, 0.75f));
  draw_lines(lines, exchange.question, bubble);
  ImGui::Dummy({room, bubble.max.y - bubble.min.y});

  const ImGuiStyle& style = ImGui::GetStyle();
  const auto small_width = [&](const char* text) {
    return ImGui::CalcTextSize(text).x + 2 * style.FramePadding.x;
  };
  ImGui::SetCursorPosX(
      ImGui::GetCursorPosX() +
      std::max(0.0f, room - small_width("Edit") - small_width("Copy") - style.ItemSpacing.x));
  ImGui::BeginDisabled(!options.can_ask);
  if (ImGui::SmallButton(fmt::format("Edit##question {}", index).c_str()))
    editing_ = Editing{.revision = exchange.revision, .text = exchange.question};
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Edit the question and send it again.");
  ImGui::SameLine();
  if (ImGui::SmallButton(fmt::format("Copy##question {}", index).c_str()))
    ImGui::SetClipboardText(exchange.question.c_str());
}

void ChatTranscript::draw_reply_notes(const ChatReply& reply, bool running,
                                      const TranscriptOptions& options) {
  if (running && reply.generated_tokens() == 0) {
    faint_text(fmt::format("Reading {} prompt tokens, {:.1f} s", reply.prompt_tokens,
                           options.answer_seconds));
    return;
  }
  if (!reply.error.empty()) warning_text(*theme_, reply.error);
  if (reply.left_out > 0)
    faint_text(
        fmt::format("The context is full: the oldest {} messages were dropped.", reply.left_out));
  if (reply.tokens.empty()) return;
  std::string line = describe(reply);
  const std::string end = running ? std::string() : describe_end(reply);
  if (!end.empty() && reply.error.empty()) line += "; " + end;
  faint_text(line);
}

void ChatTranscript::draw_reply_buttons(const Chat& chat, size_t index,
                                        const TranscriptOptions& options,
                                        TranscriptAction& action) {
  const ChatReply& reply = chat.exchanges[index].reply;
  const bool last = index + 1 == chat.exchanges.size();
  bool first = true;
  const auto button = [&](const char* label, bool enabled, const char* tooltip) {
    if (!std::exchange(first, false)) ImGui::SameLine();
    ImGui::BeginDisabled(!enabled);
    const bool pressed = ImGui::SmallButton(fmt::format("{}##reply {}", label, index).c_str());
    ImGui::EndDisabled();
    ImGui::SetItemTooltip("%s", tooltip);
    return pressed;
  };
  if (!reply.text.empty() && button("Copy", true, "Copy the answer."))
    ImGui::SetClipboardText(reply.text.c_str());
  if (!last || options.answering) return;
  if (button("Regenerate", options.can_ask, "Generate another answer to this question."))
    action.kind = TranscriptAction::Kind::kRegenerate;
  if (options.can_continue &&
      button("Continue", options.can_ask, "Continue the answer where it ended."))
    action.kind = TranscriptAction::Kind::kContinue;
}

void ChatTranscript::draw_reply(const Chat& chat, size_t index, const TranscriptOptions& options,
                                TranscriptAction& action) {
  const ChatExchange& exchange = chat.exchanges[index];
  const ChatReply& reply = exchange.reply;
  const bool running = options.answering && index + 1 == chat.exchanges.size();
  ExchangeLayout& found = layout_of(exchange);
  const float room = ImGui::GetContentRegionAvail().x;
  if (!reply.text.empty()) {
    lay_out(found.reply, reply.text, std::max(1.0f, room - 2 * theme_->px(kPadding)));
    const float width =
        std::min(room, found.reply.width() + 2 * theme_->px(kPadding) + theme_->px(8));
    const Bubble bubble = draw_bubble(found.reply, 0, width, style_color(ImGuiCol_FrameBg, 0.75f));
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    if (running)
      draw.AddRectFilled(bubble.min,
                         {bubble.min.x + theme_->px(options.marked ? 5 : 3), bubble.max.y},
                         theme_->sequence_color(options.request), theme_->px(kRounding),
                         ImDrawFlags_RoundCornersLeft);
    ImGui::InvisibleButton(fmt::format("##answer {}", index).c_str(),
                           {width, bubble.max.y - bubble.min.y});
    const bool clicked = ImGui::IsItemClicked(ImGuiMouseButton_Left);
    const bool by_key = ImGui::IsItemActivated() && !clicked;
    const bool hovered = ImGui::IsItemHovered();
    if (hovered && running) hovers_answer_ = true;
    const auto token =
        hovered ? token_at(reply, found, bubble, ImGui::GetMousePos()) : std::nullopt;
    if (ImGui::IsItemVisible()) shade_tokens(reply, found, bubble, options.show_tokens);
    if (token) {
      draw.AddRectFilled(token->min, token->max, style_color(ImGuiCol_HeaderHovered, 0.6f),
                         theme_->px(2));
      hovered_token_ = token_name(reply.tokens[token->token]);
      draw_tooltip(reply, token->token);
    }
    draw_lines(found.reply, reply.text, bubble);
    if ((token && clicked) || (by_key && !reply.tokens.empty())) {
      opened_ = Opened{.revision = exchange.revision, .token = token ? token->token : 0};
      open_popup_ = true;
    }
  }
  draw_reply_notes(reply, running, options);
  draw_reply_buttons(chat, index, options, action);
}

TranscriptAction ChatTranscript::draw(const Chat& chat, const TranscriptOptions& options,
                                      const Theme& theme) {
  theme_ = &theme;
  ++frame_;
  hovers_answer_ = false;
  hovered_token_.clear();
  if (font_size_ != ImGui::GetFontSize()) {
    layouts_.clear();
    font_size_ = ImGui::GetFontSize();
  }
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  TranscriptAction action;
  for (size_t i = 0; i < chat.exchanges.size(); ++i) {
    draw_question(chat, i, options, action);
    ImGui::Dummy({0, theme.px(kBubbleGap) / 2});
    draw_reply(chat, i, options, action);
    ImGui::Dummy({0, theme.px(kBubbleGap)});
  }
  draw_popup(chat, options, action);
  if (at_end || frames_to_end_ > 0) ImGui::SetScrollHereY(1);
  if (frames_to_end_ > 0) --frames_to_end_;
  drop_old();
  return action;
}

}  // namespace hearth
