// The simple view: the chat with a model picker and the speed above it, and a button that shows the
// engine. Call only from the window's thread.
#pragma once

#include <string>
#include <vector>

#include "ui/data/speed_meter.h"
#include "ui/panel.h"

namespace hearth {

class SimpleView {
 public:
  // Call once per frame, also while another view is shown.
  void update(const PanelContext& context);
  // Fills the window below the menu. Returns true if the user wants to see the engine.
  bool draw(const PanelContext& context, Panel& chat, Panel& models);
  double tokens_per_s() const { return speed_.tokens_per_s(); }

 private:
  void draw_models(const PanelContext& context, float width);
  void draw_picker(const PanelContext& context, Panel& models);

  SpeedMeter speed_;
  std::vector<std::string> recent_;  // models, the newest first
  bool read_ = false;
  bool picking_ = false;  // the Models panel is open
};

}  // namespace hearth
