// Plays a script: moves the mouse, presses keys and checks values, one action after another, as
// fast as frames are drawn. Call only from the window's thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "runtime/result.h"
#include "ui/data/script.h"
#include "ui/item_log.h"

namespace hearth {

class ScriptPlayer {
 public:
  // The script's file names are relative to `folder`; `name` is used in messages.
  ScriptPlayer(std::vector<ScriptStep> steps, std::string name, std::filesystem::path folder);

  // Sets the mouse position. Call between the backends' start of a frame and ImGui::NewFrame().
  void begin_frame();
  // Call after each frame was built. An error ends the script.
  Status advance(const std::map<std::string, ScriptValue>& values, double seconds);
  bool finished() const { return next_step_ == steps_.size(); }

  // What the script wants done with the frame just built, or with the window.
  std::optional<std::filesystem::path> take_screenshot();
  std::vector<std::string> take_dropped();
  bool wants_close() const { return close_; }
  // How many frames per second it wants; 0: as many as without it.
  double frames_per_s() const { return frames_per_s_; }

 private:
  // Returns true when the step is done.
  Result<bool> play(const ScriptStep& step, const std::map<std::string, ScriptValue>& values);
  Result<bool> press(const ScriptStep& step);
  Result<bool> press_key(const ScriptStep& step);
  bool timed_out(const ScriptStep& step) const { return waited_ > step.seconds; }
  Error failure(const ScriptStep& step, const std::string& why) const;
  std::filesystem::path path_of(const std::string& file) const;

  std::vector<ScriptStep> steps_;
  std::string name_;
  std::filesystem::path folder_;
  size_t next_step_ = 0;
  int frames_ = 0;
  double waited_ = 0;         // seconds spent in the current step
  double step_started_ = -1;  // when the current step started; negative: not yet
  int step_frames_ = 0;       // frames within the current step
  ImVec2 mouse_{-1, -1};
  std::optional<std::filesystem::path> screenshot_;
  std::vector<std::string> dropped_;
  bool close_ = false;
  double frames_per_s_ = 0;
};

}  // namespace hearth
