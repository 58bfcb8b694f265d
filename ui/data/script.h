// The language of `--script`: one user action per line. Words are separated by spaces; text with
// spaces goes in double quotes, with the escapes \" \\ and \n. # starts a comment.
//
//   click "Label" [SECONDS]         also double-click, right-click, hover; waits for the widget
//   scroll "Label" LINES            the mouse wheel over the widget; negative: down; "": where the
//                                   mouse is
//   type "text"                     into the focused widget
//   key Ctrl+Enter
//   wait NAME OP VALUE [SECONDS]    until a panel's value matches; OP: == != < <= > >= contains
//   expect NAME OP VALUE            fails unless the value matches now
//   wait-item "Label" [SECONDS]     until the widget is visible
//   frames N | seconds S            lets time pass
//   rate N                          frames per second from here on; 0: as usual
//   drop FILE                       as if dragged onto the window
//   screenshot FILE                 a PNG of the next frame
//   values FILE                     writes all panels' values as JSON
//   close                           as the window's close button
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"
#include "ui/values.h"

namespace hearth {

enum class ScriptAction : uint8_t {
  kClick,
  kDoubleClick,
  kRightClick,
  kHover,
  kScroll,
  kType,
  kKey,
  kWait,
  kExpect,
  kWaitItem,
  kFrames,
  kSeconds,
  kRate,
  kDrop,
  kScreenshot,
  kValues,
  kClose,
};

struct Condition {
  std::string name, comparison, value;
};

struct ScriptStep {
  uint32_t line = 0;
  ScriptAction action = ScriptAction::kClick;
  std::string text;     // label, text, key or file name
  Condition condition;  // for wait and expect
  double seconds = 20;  // timeout, or the time, the number of frames to let pass or their rate
  double lines = 0;     // for scroll
};

// An error message starts with the line number.
Result<std::vector<ScriptStep>> parse_script(std::string_view text);

// Whether the named value satisfies the condition: compared as numbers if both are numbers,
// otherwise as text. False if there is no such value.
bool satisfies(const std::map<std::string, ScriptValue>& values, const Condition& condition);

// "3" or "some text", for messages.
std::string to_text(const ScriptValue& value);

}  // namespace hearth
