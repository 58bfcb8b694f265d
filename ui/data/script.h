// What `--script` takes: one action a line, done as a person would. Words are separated by spaces;
// a text with spaces is in double quotes, with \" \\ and \n inside. Lines of # are comments.
//
//   click "Label" [SECONDS]         also double-click, right-click, hover; waits until it is there
//   scroll "Label" LINES            the wheel over that widget; negative: down
//   type "text"                     into what has the focus
//   key Ctrl+Enter
//   wait NAME OP VALUE [SECONDS]    until a panel's value is so; OP: == != < <= > >= contains
//   expect NAME OP VALUE            it is so now
//   wait-item "Label" [SECONDS]     until such a widget is there
//   frames N | seconds S            lets time pass
//   drop FILE                       as if dragged onto the window
//   screenshot FILE                 a PNG of the next frame
//   values FILE                     every panel's values as JSON
//   close                           as the window's own button does
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
  std::string text;     // label, text, key or file
  Condition condition;  // of wait and expect
  double seconds = 20;  // how long to wait at most, or how long to let pass; frames, too
  double lines = 0;     // to scroll
};

// The error names the line.
Result<std::vector<ScriptStep>> parse_script(std::string_view text);

// Whether a value is as the condition says: numbers by size where both are numbers, else as texts.
// A value that is not there fulfils nothing.
bool satisfies(const std::map<std::string, Value>& values, const Condition& condition);

// "3" or "some text", for messages.
std::string show(const Value& value);

}  // namespace hearth
