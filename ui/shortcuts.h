// The keyboard shortcuts, as data: the dashboard acts on them, and the help window lists them.
#pragma once

#include <array>
#include <cstdint>

#include <imgui.h>

namespace hearth {

enum class ShortcutAction : uint8_t {
  kNone,  // a key that a widget handles; listed only
  kShowPanel,
  kToggleView,
  kPause,
  kStep,
  kStepBack,
  kFind,
  kGlossary,
  kHelp,
  kQuit,
};

struct Shortcut {
  const char* keys;
  const char* meaning;
  ShortcutAction action = ShortcutAction::kNone;
  int chord = 0;  // of ImGui; 0: not handled by the dashboard
};

inline constexpr std::array kShortcuts = {
    Shortcut{"Ctrl+1 to Ctrl+9", "Show a panel.", ShortcutAction::kShowPanel},
    Shortcut{"Ctrl+E", "Show the engine, or only the chat.", ShortcutAction::kToggleView,
             ImGuiMod_Ctrl | ImGuiKey_E},
    Shortcut{"Ctrl+Space", "Pause or resume the engine.", ShortcutAction::kPause,
             ImGuiMod_Ctrl | ImGuiKey_Space},
    Shortcut{"Ctrl+Right", "Run one step while paused, or show the next one of the past.",
             ShortcutAction::kStep, ImGuiMod_Ctrl | ImGuiKey_RightArrow},
    Shortcut{"Ctrl+Left", "Show the step before.", ShortcutAction::kStepBack,
             ImGuiMod_Ctrl | ImGuiKey_LeftArrow},
    Shortcut{"Ctrl+F", "Search in conversations.", ShortcutAction::kFind,
             ImGuiMod_Ctrl | ImGuiKey_F},
    Shortcut{"Enter, Escape", "Send a message; stop the answer."},
    Shortcut{"Ctrl+C", "Copy the selected text of a message."},
    Shortcut{"Tab, arrow keys, Space", "Move between widgets and press them."},
    Shortcut{"Ctrl+mouse wheel", "Zoom the timeline."},
    Shortcut{"Ctrl+G", "Open the glossary.", ShortcutAction::kGlossary, ImGuiMod_Ctrl | ImGuiKey_G},
    Shortcut{"Ctrl+H", "Open the list of shortcuts.", ShortcutAction::kHelp,
             ImGuiMod_Ctrl | ImGuiKey_H},
    Shortcut{"Ctrl+Q", "Quit.", ShortcutAction::kQuit, ImGuiMod_Ctrl | ImGuiKey_Q},
};

}  // namespace hearth
