// What a panel is. One file a panel in panels/: a class and one static PanelRegistration.
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
  std::string_view name;  // as in the menu and its tab: "Timeline"
  std::string_view key;   // before its values and in settings: "timeline"
  Region region = Region::kTop;
  int order = 0;                 // among the tabs of its region, and in the menu
  std::string_view description;  // one line: what there is to see
};

// What panels have in common while a frame is drawn: the request under the mouse, or clicked.
struct Selection {
  RequestId hovered = 0;       // as of the frame before: draw it marked
  RequestId pinned = 0;        // by a click; 0: none
  RequestId next_hovered = 0;  // set this while drawing

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

  // Once a frame, also while hidden, before anything is drawn.
  virtual void update(const PanelContext& context) = 0;
  // Inside its region: a child window with its own scrolling is already begun.
  virtual void draw(const PanelContext& context) = 0;
  // What it shows, by name, for scripts and tests.
  virtual void report(ValueSink& values) const = 0;
  // Before the program ends, or when everything is to be saved now.
  virtual void save() {}

 private:
  PanelInfo info_;
};

class PanelRegistration {
 public:
  using Make = std::function<std::unique_ptr<Panel>()>;
  explicit PanelRegistration(Make make);
  // A new one of each, by region and order.
  static std::vector<std::unique_ptr<Panel>> make_all();
};

}  // namespace hearth
