// The part of the Control panel that sends synthetic requests: the buttons with their counts, the
// settings of the load, and traces.
#pragma once

#include <cstdint>
#include <string>

#include "ui/data/load_generator.h"
#include "ui/data/settings.h"
#include "ui/panel.h"
#include "ui/theme.h"
#include "ui/values.h"

namespace hearth {

class LoadControls {
 public:
  // Sends what is due. Call once per frame, also while the panel is hidden.
  void update(const PanelContext& context);
  // Stops everything, and starts nothing for the demo. Call in every frame in which a lesson has
  // the engine for itself, after update().
  void leave_to_lesson(const PanelContext& context);
  void report(ValueSink& values) const;

  void draw_buttons(const Theme& theme);
  // `context` is the engine's, in tokens.
  void draw_settings(Settings& store, uint32_t context);
  void draw_trace(const PanelContext& context);

 private:
  void draw_counts(const Theme& theme) const;
  void start_demo_load();
  void read_settings(const Settings& settings);
  void write_settings(Settings& settings) const;

  LoadGenerator load_;
  bool settings_read_ = false;
  uint64_t demo_generation_ = 0;  // the engine for which the demo's load was started
  int burst_ = 8;
  std::string trace_ = "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,seed=1";
  float trace_speed_ = 1;
};

}  // namespace hearth
