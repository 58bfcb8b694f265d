#include "ui/panels/chat_transcript.h"

#include <algorithm>

#include <fmt/format.h>

#include "ui/panels/chat_widgets.h"
#include "ui/panels/token_alternatives.h"

namespace hearth {
namespace {

constexpr float kBubbleGap = 6;          // below a bubble, at scale 1
constexpr float kQuestionShare = 0.86f;  // maximum, as a fraction of the width
constexpr size_t kMaxLayouts = 512;

}  // namespace

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
  const auto clicked =
      draw_alternatives(*theme_, token, /*buttons=*/true, options.can_ask && options.can_branch);
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  ImGui::TextUnformatted(!options.can_ask ? "There is no model to continue with."
                         : options.can_branch
                             ? "Continues in a new tab that shares the KV blocks."
                             : "A server cannot continue an answer at another token.");
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
      message_box("##question", editing_->text, editing_->wrap,
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
  const float padding = theme_->px(kBubblePadding);
  RichLines& lines = layout_of(exchange).question;
  wrap_text(*theme_, lines, exchange.question, /*markdown=*/false,
            room * kQuestionShare - 2 * padding);
  const float width = std::min(room, lines.width() + 2 * padding + 1);
  const TextBubble bubble = draw_bubble(*theme_, lines.height(), room - width, width,
                                        style_color(ImGuiCol_HeaderHovered, 0.75f));
  const RichMetrics metrics = chat_metrics(*theme_);
  const PlacedText text{lines, exchange.question, bubble.text, metrics};
  ImGui::InvisibleButton(fmt::format("##asked {}", index).c_str(), {room, bubble.height()});
  const std::string key = fmt::format("{}.question", exchange.revision);
  selection_.update(text, key);
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  selection_.draw(text, key);
  found_ += mark_search(*theme_, text, options.search);
  draw_text(*theme_, text, theme_->text_color());

  const ImGuiStyle& style = ImGui::GetStyle();
  const auto small_width = [&](const char* label) {
    return ImGui::CalcTextSize(label).x + 2 * style.FramePadding.x;
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
    // A server says how many there were when it has answered.
    faint_text(reply.prompt_tokens == 0
                   ? fmt::format("Waiting for the first token, {:.1f} s", options.answer_seconds)
                   : fmt::format("Reading {} prompt tokens, {:.1f} s", reply.prompt_tokens,
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
    ImGui::SetClipboardText(answer_text(reply).c_str());
  if (!last || options.answering) return;
  if (button("Regenerate", options.can_ask, "Generate another answer to this question."))
    action.kind = TranscriptAction::Kind::kRegenerate;
  if (options.can_continue &&
      button("Continue", options.can_ask, "Continue the answer where it ended."))
    action.kind = TranscriptAction::Kind::kContinue;
}

TranscriptAction ChatTranscript::draw(const Chat& chat, const TranscriptOptions& options,
                                      const Theme& theme) {
  theme_ = &theme;
  ++frame_;
  hovers_answer_ = false;
  hovered_token_.clear();
  found_ = 0;
  last_answer_ = {};
  if (font_size_ != ImGui::GetFontSize()) {
    layouts_.clear();
    font_size_ = ImGui::GetFontSize();
  }
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  TranscriptAction action;
  for (size_t i = 0; i < chat.exchanges.size(); ++i) {
    draw_question(chat, i, options, action);
    ImGui::Dummy({0, theme.px(kBubbleGap) / 2});
    draw_answer(chat, i, options, action);
    ImGui::Dummy({0, theme.px(kBubbleGap)});
  }
  draw_popup(chat, options, action);
  if (at_end || frames_to_end_ > 0) ImGui::SetScrollHereY(1);
  if (frames_to_end_ > 0) --frames_to_end_;
  drop_old();
  return action;
}

}  // namespace hearth
