// The frame around the panels: menu, the simple view or the regions with their tabs, keyboard
// shortcuts, and the layout that is saved. Call only from the window's thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ui/data/layout_state.h"
#include "ui/data/settings.h"
#include "ui/engine_host.h"
#include "ui/help.h"
#include "ui/panel.h"
#include "ui/shortcuts.h"
#include "ui/simple_view.h"
#include "ui/theme.h"
#include "ui/values.h"

namespace hearth {

// The panel that opens and closes with a comparison, and so is in no layout.
inline constexpr std::string_view kCompareKey = "compare";

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
  // "simple", "engine" or "class"; other names change nothing.
  void use_view(std::string_view name);
  void set_zoom(float zoom) {
    zoom_ = zoom;
    restyle_ = true;
  }
  // Saves the settings and the panels' own data.
  void save();
  bool wants_close() const { return close_; }

 private:
  struct Tab {
    std::unique_ptr<Panel> panel;
    Region region = Region::kTop;
    bool visible = true;
    bool select = false;         // select its tab in the next frame
    bool active = false;         // its tab is selected, so it is visible
    bool visible_before = true;  // the comparison was opened
    float below = 0;             // the pixels of its content that only scrolling shows
  };

  PanelContext context();
  void store_layout();
  void draw_menu();
  void draw_view_menu();
  void draw_layouts_menu();
  void draw_status();
  void draw_regions();
  void draw_region(Region region, const Box& box);
  void draw_splitters(const Arrangement& arrangement);
  void handle_shortcuts();
  void act(ShortcutAction action);
  void follow_comparison();
  void restyle();
  // dashboard_layout.cpp
  Tab* find(std::string_view key);
  bool shows(const Tab& tab) const;
  // The simple view is shown; it needs a model to chat with.
  bool shows_simple() const;
  void show(Tab& tab);
  void show_simple() { simple_ = true; }
  void show_engine() { simple_ = false; }
  LayoutState layout() const;
  void use_layout(const LayoutState& state);
  void use_preset(const LayoutPreset& preset);
  void draw_tab_menu(Tab& tab);
  void move(Tab& tab, Region region);
  void take_dragged_tab(Region region, const Box& box);

  EngineHost& host_;
  Settings& settings_;
  Theme& theme_;
  std::vector<Tab> tabs_;
  Splits splits_ = default_splits();
  SimpleView simple_view_;
  bool simple_ = true;         // the simple view is shown
  bool chat_in_demo_ = false;  // the user wants to see the chat there
  std::string layout_name_;    // being typed
  float zoom_before_ = 0;      // before a preset changed it; 0: none did
  Selection selection_;
  float density_ = 1, zoom_ = 1;
  float fit_ = 1;  // less in a window that is too small for all panels
  Help help_;
  bool close_ = false, restyle_ = true, comparing_ = false;
};

}  // namespace hearth
