#include "ui/script_player.h"

#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "runtime/host/replace_file.h"

namespace hearth {
namespace {

struct KeyName {
  std::string_view name;
  ImGuiKey key;
};
constexpr std::array kKeys = {
    KeyName{"Enter", ImGuiKey_Enter},
    KeyName{"Escape", ImGuiKey_Escape},
    KeyName{"Tab", ImGuiKey_Tab},
    KeyName{"Space", ImGuiKey_Space},
    KeyName{"Backspace", ImGuiKey_Backspace},
    KeyName{"Delete", ImGuiKey_Delete},
    KeyName{"Left", ImGuiKey_LeftArrow},
    KeyName{"Right", ImGuiKey_RightArrow},
    KeyName{"Up", ImGuiKey_UpArrow},
    KeyName{"Down", ImGuiKey_DownArrow},
    KeyName{"Home", ImGuiKey_Home},
    KeyName{"End", ImGuiKey_End},
    KeyName{"PageUp", ImGuiKey_PageUp},
    KeyName{"PageDown", ImGuiKey_PageDown},
    KeyName{"Ctrl", ImGuiMod_Ctrl},
    KeyName{"Shift", ImGuiMod_Shift},
    KeyName{"Alt", ImGuiMod_Alt},
};

ImGuiKey key_of(std::string_view name) {
  for (const KeyName& one : kKeys)
    if (one.name == name) return one.key;
  if (name.size() != 1) return ImGuiKey_None;
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  if (letter >= 'A' && letter <= 'Z') return static_cast<ImGuiKey>(ImGuiKey_A + (letter - 'A'));
  if (letter >= '0' && letter <= '9') return static_cast<ImGuiKey>(ImGuiKey_0 + (letter - '0'));
  return ImGuiKey_None;
}

std::string dump(const std::map<std::string, ScriptValue>& values) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : values)
    std::visit([&, &key = name](const auto& one) { json[key] = one; }, value);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

ScriptPlayer::ScriptPlayer(std::vector<ScriptStep> steps, std::string name,
                           std::filesystem::path folder)
    : steps_(std::move(steps)), name_(std::move(name)), folder_(std::move(folder)) {}

// Overrides the real mouse, so that the script's pointer stays where it was put.
void ScriptPlayer::begin_frame() {
  if (mouse_.x >= 0) ImGui::GetIO().AddMousePosEvent(mouse_.x, mouse_.y);
}

Status ScriptPlayer::advance(const std::map<std::string, ScriptValue>& values, double seconds) {
  // Sizes and focus need a few frames to settle.
  constexpr int kSettlingFrames = 8;
  if (finished() || frames_++ < kSettlingFrames) return {};
  const ScriptStep& step = steps_[next_step_];
  if (step_started_ < 0) step_started_ = seconds;
  waited_ = seconds - step_started_;
  HEARTH_ASSIGN(const bool done, play(step, values));
  ++step_frames_;
  if (!done) return {};
  ++next_step_;
  step_frames_ = 0;
  step_started_ = -1;
  return {};
}

Result<bool> ScriptPlayer::play(const ScriptStep& step,
                                const std::map<std::string, ScriptValue>& values) {
  switch (step.action) {
    case ScriptAction::kClick:
    case ScriptAction::kDoubleClick:
    case ScriptAction::kRightClick:
    case ScriptAction::kHover:
    case ScriptAction::kScroll:
      return press(step);
    case ScriptAction::kType:
      ImGui::GetIO().AddInputCharactersUTF8(step.text.c_str());
      return true;
    case ScriptAction::kKey:
      return press_key(step);
    case ScriptAction::kWait:
    case ScriptAction::kExpect: {
      const Condition& wanted = step.condition;
      if (satisfies(values, wanted)) return true;
      if (step.action == ScriptAction::kWait && !timed_out(step)) return false;
      const auto found = values.find(wanted.name);
      return failure(step, fmt::format("{} is {}, not {} {}", wanted.name,
                                       found == values.end() ? "missing" : to_text(found->second),
                                       wanted.comparison, wanted.value));
    }
    case ScriptAction::kWaitItem:
      if (ItemLog::instance().find(step.text)) return true;
      if (!timed_out(step)) return false;
      return failure(step, fmt::format("no visible widget is labelled \"{}\"", step.text));
    case ScriptAction::kFrames:
      return step_frames_ >= static_cast<int>(std::lround(step.seconds));
    case ScriptAction::kSeconds:
      return timed_out(step);
    case ScriptAction::kRate:
      frames_per_s_ = step.seconds;
      return true;
    case ScriptAction::kDrop:
      dropped_.push_back(path_of(step.text).string());
      return true;
    case ScriptAction::kScreenshot:
      // A tooltip or menu that just opened is drawn one frame later.
      if (step_frames_ < 2) return false;
      screenshot_ = path_of(step.text);
      return true;
    case ScriptAction::kValues:
      HEARTH_TRY(replace_file(path_of(step.text), dump(values), {.create_folder = true}));
      return true;
    case ScriptAction::kClose:
      close_ = true;
      return true;
  }
  return true;
}

// Moves the mouse, waits a frame, presses and releases, since ImGui needs a frame for each.
Result<bool> ScriptPlayer::press(const ScriptStep& step) {
  constexpr int kArrive = 0, kPress = 2, kRelease = 3, kDone = 4;
  ImGuiIO& io = ImGui::GetIO();
  const bool stays = step.action == ScriptAction::kScroll && step.text.empty();
  if (step_frames_ == kArrive && !stays) {
    const std::optional<LoggedItem> item = ItemLog::instance().find(step.text);
    if (!item) {
      if (timed_out(step))
        return failure(step, fmt::format("no visible widget is labelled \"{}\"", step.text));
      step_frames_ = kArrive - 1;
      return false;
    }
    mouse_ = {(item->min.x + item->max.x) / 2, (item->min.y + item->max.y) / 2};
    return false;
  }
  if (step.action == ScriptAction::kHover) return step_frames_ >= kPress;
  if (step.action == ScriptAction::kScroll) {
    if (step_frames_ == kPress) io.AddMouseWheelEvent(0, static_cast<float>(step.lines));
    return step_frames_ >= kDone;
  }
  const int button = step.action == ScriptAction::kRightClick ? 1 : 0;
  const int presses = step.action == ScriptAction::kDoubleClick ? 2 : 1;
  const int event = step_frames_ - kPress;
  if (event >= 0 && event < 2 * presses) io.AddMouseButtonEvent(button, event % 2 == 0);
  static_assert(kRelease == kPress + 1);
  return step_frames_ >= kDone + 2 * (presses - 1);
}

Result<bool> ScriptPlayer::press_key(const ScriptStep& step) {
  ImGuiIO& io = ImGui::GetIO();
  std::string_view rest = step.text;
  while (!rest.empty()) {
    const size_t plus = rest.find('+', 1);
    const ImGuiKey key = key_of(rest.substr(0, plus));
    if (key == ImGuiKey_None) return failure(step, fmt::format("'{}' is not a key", step.text));
    io.AddKeyEvent(key, step_frames_ == 0);
    rest.remove_prefix(plus == std::string_view::npos ? rest.size() : plus + 1);
  }
  return step_frames_ >= 1;
}

Error ScriptPlayer::failure(const ScriptStep& step, const std::string& why) const {
  return {ErrorKind::kInvalid, fmt::format("{}:{}: {}", name_, step.line, why)};
}

std::filesystem::path ScriptPlayer::path_of(const std::string& file) const {
  return folder_.empty() || file.starts_with('/') ? std::filesystem::path(file) : folder_ / file;
}

std::optional<std::filesystem::path> ScriptPlayer::take_screenshot() {
  return std::exchange(screenshot_, std::nullopt);
}

std::vector<std::string> ScriptPlayer::take_dropped() { return std::exchange(dropped_, {}); }

}  // namespace hearth
