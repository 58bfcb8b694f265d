// The frame around panels: a menu, seven regions with tabs, shortcuts, and what of it is
// remembered. Of the window's thread alone.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ui/data/layout.h"
#include "ui/data/settings.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/theme.h"
#include "ui/values.h"

namespace hearth {

class Dashboard {
 public:
  // Everything outlives the dashboard. `theme` is changed by the menu.
  Dashboard(EngineHost& host, Settings& settings, Theme& theme);
  ~Dashboard();

  // `density`: pixels of the screen to one of a plain one.
  void set_density(float density);
  // Between ImGui::NewFrame() and ImGui::Render().
  void draw();
  ValueSink values() const;
  // Settings and what panels keep.
  void save();
  bool wants_close() const { return close_; }

 private:
  struct Tab {
    std::unique_ptr<Panel> panel;
    bool visible = true;
    bool select = false;  // its tab is to be chosen in the next frame
    bool active = false;  // it is the one of its region that is seen
  };

  PanelContext context();
  void store_layout();
  void draw_menu();
  void draw_view_menu();
  void draw_status();
  void draw_regions();
  void draw_region(Region region, const Box& box);
  void draw_splitters(const Arrangement& arrangement);
  void draw_help();
  void handle_shortcuts();
  void show_only(std::initializer_list<std::string_view> keys);
  void restyle();

  EngineHost& host_;
  Settings& settings_;
  Theme& theme_;
  std::vector<Tab> tabs_;
  Splits splits_;
  Selection selection_;
  float density_ = 1, zoom_ = 1;
  bool help_ = false, close_ = false, restyle_ = true;
};

}  // namespace hearth
