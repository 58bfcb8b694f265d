// The bar that moves the whole dashboard through the last steps: back, forward, play, and to a
// file. Drawn by the Timeline panel.
#pragma once

#include <string>

#include "ui/engine_host.h"
#include "ui/theme.h"

namespace hearth {

class ScrubBar {
 public:
  void draw(const Theme& theme, EngineHost& host);

 private:
  static void draw_slider(Scrubber& scrubber);
  void draw_saving(EngineHost& host);

  std::string path_ = "hearth-recording.json";
  std::string saved_;  // how saving went
};

}  // namespace hearth
