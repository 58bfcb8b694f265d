// Chat: conversations with the model in tabs. Every token of an answer shows its alternatives.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/chat_controller.h"
#include "ui/data/chat_export.h"
#include "ui/data/chat_presets.h"
#include "ui/data/settings.h"
#include "ui/draw/legend.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/active_model.h"
#include "ui/panels/chat_controls.h"
#include "ui/panels/chat_files.h"
#include "ui/panels/chat_find.h"
#include "ui/panels/chat_tabs.h"
#include "ui/panels/chat_transcript.h"
#include "ui/panels/chat_welcome.h"
#include "ui/panels/chat_widgets.h"
#include "ui/panels/token_alternatives.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr float kMinHeightForControls = 260;  // at scale 1
constexpr float kMinWidthForCheckbox = 300;

// The meaning of the boxes around tokens.
std::array<LegendEntry, 3> token_legend(const Theme& theme) {
  return {{{.text = "likely", .color = token_color(theme, 1)},
           {.text = "unlikely", .color = token_color(theme, 0)},
           {.text = "branched here",
            .color = style_color(ImGuiCol_CheckMark),
            .mark = LegendEntry::Mark::kFrame}}};
}

bool has_text(const std::string& text) {
  return text.find_first_not_of(" \t\n") != std::string::npos;
}

class ChatPanel : public Panel {
 public:
  ChatPanel()
      : Panel({.name = "Chat",
               .key = "chat",
               .region = Region::kLeft,
               .order = 0,
               .description =
                   "Chat with the model, and point at a token to see its probability and its "
                   "alternatives."}) {}

  void update(const PanelContext& context) override;
  void draw(const PanelContext& context) override;
  void report(ValueSink& values) const override;
  void save() override {
    if (chats_) chats_->save_all();
  }

 private:
  Chat* shown() const { return chats_ ? chats_->history().find(tabs_.shown()) : nullptr; }
  void find_model(const PanelContext& context);
  void show(const Chat& chat);
  void begin_chat();
  void draw_chat(const PanelContext& context, Chat& chat);
  void draw_transcript(const PanelContext& context, Chat& chat, float height);
  void draw_gauge(const PanelContext& context, Chat& chat);
  void draw_input(const PanelContext& context, Chat& chat);
  void ask(Chat& chat, std::string question);
  void apply(const TranscriptAction& action, Chat& chat);

  std::unique_ptr<ChatController> chats_;
  ActiveModel active_;
  ReplyStyle style_;  // of the active model
  std::optional<std::uint64_t> style_generation_;
  ChatTabs tabs_;
  ChatTranscript transcript_;
  ChatFind find_;
  ChatFiles files_;
  ChatPresets presets_;
  std::string preset_name_;  // being typed
  SoftWrap input_;
  bool focus_input_ = false;
  bool show_tokens_ = false;
  bool restored_ = false;
};

void ChatPanel::update(const PanelContext& context) {
  if (!chats_) {
    const std::filesystem::path& folder = context.settings.folder();
    chats_ = std::make_unique<ChatController>(folder.empty() ? folder : folder / "chats");
    show_tokens_ = context.settings.get("chat.show_tokens", false);
    presets_ = ChatPresets(context.settings.get("chat.presets", nlohmann::json::object()));
  }
  if (std::exchange(context.selection.find_in_chat, false)) find_.open();
  find_model(context);
  chats_->update(active_.model ? &*active_.model : nullptr, ImGui::GetTime());
  if (!chats_->history().load()) return;
  const auto& chats = chats_->history().chats();
  const auto open_one = std::ranges::find_if(chats.rbegin(), chats.rend(),
                                             [](const auto& chat) { return chat->open; });
  if (!restored_) {
    restored_ = true;
    const Chat* const last =
        chats_->history().find(context.settings.get("chat.shown", tabs_.shown()));
    if (last != nullptr && last->open)
      show(*last);
    else if (open_one != chats.rend())
      show(**open_one);
  }
  // The visible tab was closed, or there is none yet.
  if (const Chat* const chat = shown(); chat == nullptr || !chat->open) {
    if (open_one != chats.rend())
      show(**open_one);
    else
      begin_chat();
  }
  if (context.host.has_dropped() && is_attachment(context.host.dropped()))
    if (Chat* const chat = shown()) {
      if (files_.attach(*chat, context.host.take_dropped())) chats_->mark_unsaved(*chat);
      focus_input_ = true;
    }
  context.settings.set("chat.shown", tabs_.shown());
  context.settings.set("chat.show_tokens", show_tokens_);
}

void ChatPanel::find_model(const PanelContext& context) {
  active_ = find_active_model(context);
  if (!active_.model) return;
  ChatModel& model = *active_.model;
  if (model.remote != nullptr) return;  // the server separates reasoning itself
  if (std::exchange(style_generation_, model.generation) != model.generation)
    style_ = find_reply_style(*model.tokenizer, model.chat);
  model.style = &style_;
}

void ChatPanel::show(const Chat& chat) {
  tabs_.select(chat);
  transcript_.stop_editing();
  transcript_.scroll_to_end();
}

void ChatPanel::begin_chat() {
  const auto& chats = chats_->history().chats();
  const Chat* const settings_from = shown() != nullptr ? shown()
                                    : chats.empty()    ? nullptr
                                                       : chats.back().get();
  show(chats_->new_chat(settings_from));
  focus_input_ = true;
}

void ChatPanel::ask(Chat& chat, std::string question) {
  if (!active_.model || chats_->answering(chat)) return;
  transcript_.stop_editing();
  transcript_.scroll_to_end();
  chats_->ask(chat, std::move(question), *active_.model);
  focus_input_ = true;
}

void ChatPanel::apply(const TranscriptAction& action, Chat& chat) {
  using Kind = TranscriptAction::Kind;
  if (action.kind == Kind::kNone || !active_.model) return;
  const ChatModel& model = *active_.model;
  switch (action.kind) {
    case Kind::kNone:
      return;
    case Kind::kRegenerate:
      chats_->regenerate(chat, model);
      break;
    case Kind::kContinue:
      chats_->continue_answer(chat, model);
      break;
    case Kind::kEditQuestion:
      chats_->edit_question(chat, action.exchange, action.question, model);
      break;
    case Kind::kBranch:
      if (Chat* made =
              chats_->branch(chat, action.exchange, action.token, action.alternative, model))
        show(*made);
      break;
  }
  transcript_.scroll_to_end();
  focus_input_ = true;
}

void ChatPanel::draw(const PanelContext& context) {
  // Another panel may have closed the model in this frame.
  find_model(context);
  if (!chats_ || !chats_->history().load()) {
    faint_text("Loading conversations...");
    return;
  }
  tabs_.draw(*chats_,
             {.show = [this](const Chat& chat) { show(chat); },
              .draw = [&](Chat& chat) { draw_chat(context, chat); },
              .begin_chat = [this] { begin_chat(); },
              .draw_export = [&](const Chat& chat) { files_.draw_export(chat, context.theme); }});
}

void ChatPanel::draw_chat(const PanelContext& context, Chat& chat) {
  const Theme& theme = context.theme;
  ImGui::PushID(chat.id.c_str());
  tabs_.draw_undo(*chats_);
  if (Chat* const found = find_.draw(*chats_, chat, transcript_.found(), theme)) {
    found->open = true;
    show(*found);
  }
  if (ImGui::GetContentRegionAvail().y > theme.px(kMinHeightForControls) &&
      ImGui::CollapsingHeader("Chat settings")) {
    ImGui::Indent(theme.px(12));
    if (draw_system_prompt(chat, theme)) chats_->mark_unsaved(chat);
    const SamplingOptions& defaults =
        active_.model ? active_.model->default_sampling : kHearthSampling;
    if (draw_sampling(chat.sampling, defaults, active_.model ? active_.model->context : 0, theme))
      chats_->mark_unsaved(chat);
    bool saved = false;
    if (draw_presets(chat, presets_, active_.name, preset_name_, saved, theme))
      chats_->mark_unsaved(chat);
    if (saved) context.settings.set("chat.presets", presets_.saved());
    ImGui::Unindent(theme.px(12));
  }
  const ImGuiStyle& style = ImGui::GetStyle();
  const float input = 3 * ImGui::GetTextLineHeight() + 2 * style.FramePadding.y;
  const float gauge = ImGui::GetFrameHeightWithSpacing();
  const float legend =
      show_tokens_ ? legend_height(theme, token_legend(theme), ImGui::GetContentRegionAvail().x) +
                         style.ItemSpacing.y
                   : 0;
  const std::string& problem =
      chats_->history().failure().empty() ? files_.message() : chats_->history().failure();
  const float failure = problem.empty() ? 0 : 2 * ImGui::GetTextLineHeight();
  const float room =
      ImGui::GetContentRegionAvail().y - input - gauge - legend - failure - style.ItemSpacing.y;
  draw_transcript(context, chat, std::max(theme.px(30), room));
  if (failure > 0) warning_text(theme, problem);
  if (show_tokens_) draw_legend(theme, token_legend(theme));
  draw_gauge(context, chat);
  draw_input(context, chat);
  ImGui::PopID();
}

void ChatPanel::draw_transcript(const PanelContext& context, Chat& chat, float height) {
  if (ImGui::BeginChild("##messages", {0, height}, ImGuiChildFlags_NavFlattened)) {
    if (chat.exchanges.empty()) {
      if (const char* const example = draw_welcome(active_, context.theme)) ask(chat, example);
    } else {
      const RequestId request = chats_->request(chat);
      const bool remote = active_.model && active_.model->remote != nullptr;
      const TranscriptAction action =
          transcript_.draw(chat,
                           {.answering = chats_->answering(chat),
                            .answer_seconds = chats_->answer_seconds(chat),
                            .request = request,
                            .marked = request != 0 && context.selection.marked() == request,
                            .can_ask = active_.model.has_value(),
                            .can_continue = !remote && chats_->can_continue(chat),
                            .can_branch = !remote,
                            .show_tokens = show_tokens_,
                            .search = find_.wanted()},
                           context.theme);
      if (transcript_.hovers_answer()) context.selection.next_hovered = request;
      apply(action, chat);
    }
  }
  ImGui::EndChild();
}

void ChatPanel::draw_gauge(const PanelContext& context, Chat& chat) {
  const Theme& theme = context.theme;
  const float room = ImGui::GetContentRegionAvail().x;
  const float box = checkbox_width("Show tokens") + button_width("Attach") +
                    2 * ImGui::GetStyle().ItemSpacing.x + theme.px(6);
  const bool narrow = room < theme.px(kMinWidthForCheckbox);
  ImGui::AlignTextToFramePadding();
  const float y = ImGui::GetCursorPosY();
  ImGui::SetCursorPosY(y + ImGui::GetStyle().FramePadding.y);
  draw_context_gauge(context_use(chat, active_.model ? active_.model->context : 0),
                     narrow ? room : room - box, theme);
  if (narrow) return;
  ImGui::SameLine();
  ImGui::SetCursorPosY(y);
  if (files_.draw_attach(chat, theme)) {
    chats_->mark_unsaved(chat);
    focus_input_ = true;
  }
  ImGui::SameLine();
  ImGui::SetCursorPosY(y);
  outlined_checkbox("Show tokens", &show_tokens_);
  ImGui::SetItemTooltip(
      "Show the text as the model wrote it, with a box around each token. The less likely the\n"
      "token, the stronger the colour.");
}

void ChatPanel::draw_input(const PanelContext& context, Chat& chat) {
  const Theme& theme = context.theme;
  const bool answering = chats_->answering(chat);
  const float button = std::max(theme.px(58), ImGui::CalcTextSize("Send").x + theme.px(20));
  const float height = std::max(ImGui::GetFrameHeight(), ImGui::GetContentRegionAvail().y);
  const float width = std::max(
      theme.px(60), ImGui::GetContentRegionAvail().x - button - ImGui::GetStyle().ItemSpacing.x);
  if (answering && active_.model && ImGui::IsKeyPressed(ImGuiKey_Escape, false) &&
      ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows))
    chats_->stop(chat, *active_.model);
  if (std::exchange(focus_input_, false)) ImGui::SetKeyboardFocusHere();
  const std::string hint =
      active_.model ? fmt::format("Message {}", active_.name) : "No model to chat with";
  const MessageBox box =
      message_box("##message", chat.draft, input_, {width, height}, hint.c_str());
  if (box.edited) chats_->mark_unsaved(chat);
  ImGui::SameLine();
  bool send = box.entered;
  if (answering) {
    ImGui::BeginDisabled(!active_.model);
    if (ImGui::Button("Stop", {button, height})) {
      chats_->stop(chat, *active_.model);
      focus_input_ = true;
    }
    ImGui::EndDisabled();
    ImGui::SetItemTooltip("Stop generating (Escape).");
  } else {
    ImGui::BeginDisabled(!active_.model || !has_text(chat.draft));
    send |= ImGui::Button("Send", {button, height});
    ImGui::EndDisabled();
    ImGui::SetItemTooltip("Enter sends; Shift+Enter starts a new line.");
  }
  if (!send || answering || !active_.model || !has_text(chat.draft)) return;
  ask(chat, std::exchange(chat.draft, {}));
}

void ChatPanel::report(ValueSink& values) const {
  if (!chats_) return;
  const auto& chats = chats_->history().chats();
  const auto open = std::ranges::count_if(chats, [](const auto& chat) { return chat->open; });
  values.set("conversations", static_cast<double>(chats.size()));
  values.set("tabs", static_cast<double>(open));
  values.set("ready", active_.model ? 1 : 0);
  values.set("reason", active_.reason);
  values.set("show_tokens", show_tokens_ ? 1 : 0);
  values.set("hovered_token", transcript_.hovered_token());
  values.set("selected", transcript_.selected());
  values.set("found", static_cast<double>(transcript_.found()));
  values.set("found_elsewhere", static_cast<double>(find_.others()));
  values.set("file_message", files_.message());
  const Chat* const chat = shown();
  if (chat == nullptr) return;
  values.set("title", chat->display_title());
  values.set("draft", chat->draft);
  values.set("messages", static_cast<double>(2 * chat->exchanges.size()));
  values.set("answering", chats_->answering(*chat) ? 1 : 0);
  const ContextUse use = context_use(*chat, active_.model ? active_.model->context : 0);
  values.set("context_used", use.used);
  values.set("context", use.context);
  values.set("left_out", use.left_out);
  const ChatReply none;
  const ChatReply& reply = chat->exchanges.empty() ? none : chat->exchanges.back().reply;
  values.set("last_question", chat->exchanges.empty() ? "" : chat->exchanges.back().question);
  values.set("last_answer", reply.text);
  values.set("last_finish", std::string(finish_reason_name(reply.finish)));
  values.set("last_error", reply.error);
  const AnswerSummary& answer = transcript_.last_answer();
  values.set("reasoning_tokens", static_cast<double>(answer.reasoning_tokens));
  values.set("reasoning_shown", answer.unfolded ? 1 : 0);
  values.set("calls", static_cast<double>(answer.calls));
  values.set("last_call", answer.last_call);
  values.set("tokens", static_cast<double>(reply.tokens.size()));
  values.set("kept_tokens", reply.kept_tokens);
  values.set("tokens_per_s", reply.tokens_per_s);
  values.set("ttft_ms", reply.first_token_seconds * 1e3);
  values.set("prompt_tokens", reply.prompt_tokens);
  values.set("cached_tokens", reply.cached_tokens);
}

const PanelRegistration kChatRegistration([] { return std::make_unique<ChatPanel>(); });

}  // namespace
}  // namespace hearth
