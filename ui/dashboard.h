// The frame around the panels: menu, seven regions with tabs, keyboard shortcuts, and the layout
// that is saved. Call only from the window's thread.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ui/data/layout.h"
#include "ui/data/settings.h"
#include "ui/engine_host.h"
#include "ui/help.h"
#include "ui/panel.h"
#include "ui/theme.h"
#include "ui/values.h"

namespace hearth {

class Dashboard {
 public:
  // REQUIRES: all arguments outlive the dashboard. The menu changes `theme`.
  Dashboard(EngineHost& host, Settings& settings, Theme& theme);
  ~Dashboard();

  // `density` is the display's scale factor.
  void set_density(float density);
  // Call between ImGui::NewFrame() and ImGui::Render().
  void draw();
  ValueSink values() const;
  // Saves the settings and the panels' own data.
  void save();
  bool wants_close() const { return close_; }

 private:
  struct Tab {
    std::unique_ptr<Panel> panel;
    bool visible = true;
    bool select = false;         // select its tab in the next frame
    bool active = false;         // its tab is selected, so it is visible
    bool visible_before = true;  // the comparison was opened
  };

  PanelContext context();
  void store_layout();
  void draw_menu();
  void draw_view_menu();
  void draw_status();
  void draw_regions();
  void draw_region(Region region, const Box& box);
  void draw_splitters(const Arrangement& arrangement);
  void handle_shortcuts();
  void follow_comparison();
  void show_only(std::initializer_list<std::string_view> keys);
  void restyle();

  EngineHost& host_;
  Settings& settings_;
  Theme& theme_;
  std::vector<Tab> tabs_;
  Splits splits_;
  Selection selection_;
  float density_ = 1, zoom_ = 1;
  Help help_;
  bool close_ = false, restyle_ = true, comparing_ = false;
};

}  // namespace hearth
