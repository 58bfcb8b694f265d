// The interface of panels. Each panel is one file in panels/: a class and a static
// PanelRegistration.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ui/data/layout.h"
#include "ui/feeds/engine_view.h"
#include "ui/values.h"

namespace hearth {

class EngineHost;
class Settings;
struct Theme;

struct PanelInfo {
  std::string_view name;  // in the menu and on its tab: "Timeline"
  std::string_view key;   // prefix of its values and settings: "timeline"
  Region region = Region::kTop;
  int order = 0;                 // within its region and in the menu
  std::string_view description;  // one sentence, shown as the menu's tooltip
};

// The request that all panels mark: the one under the mouse, or else the one last clicked.
struct Selection {
  RequestId hovered = 0;       // in the previous frame; draw it marked
  RequestId pinned = 0;        // clicked; 0: none
  RequestId next_hovered = 0;  // set by panels while drawing
  bool find_in_chat = false;   // the user wants to search; the chat panel resets it

  RequestId marked() const { return hovered != 0 ? hovered : pinned; }
};

struct PanelContext {
  const EngineView& view;
  EngineHost& host;
  Settings& settings;
  const Theme& theme;
  Selection& selection;
};

class Panel {
 public:
  explicit Panel(const PanelInfo& info) : info_(info) {}
  virtual ~Panel() = default;
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  const PanelInfo& info() const { return info_; }

  // Called once per frame before drawing, even while the panel is hidden.
  virtual void update(const PanelContext& context) = 0;
  // Draws into a scrolling child window, which is already open.
  virtual void draw(const PanelContext& context) = 0;
  // Reports the values it shows, by name, for scripts and tests.
  virtual void report(ValueSink& values) const = 0;
  // Called every few seconds and before the program ends.
  virtual void save() {}

 private:
  PanelInfo info_;
};

class PanelRegistration {
 public:
  using Make = std::function<std::unique_ptr<Panel>()>;
  explicit PanelRegistration(Make make);
  // Creates all panels, sorted by region and order.
  static std::vector<std::unique_ptr<Panel>> make_all();
};

}  // namespace hearth
