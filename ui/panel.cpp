#include "ui/panel.h"

#include <algorithm>
#include <tuple>

namespace hearth {
namespace {

std::vector<PanelRegistration::Make>& makers() {
  static std::vector<PanelRegistration::Make> list;
  return list;
}

}  // namespace

PanelRegistration::PanelRegistration(Make make) { makers().push_back(std::move(make)); }

std::vector<std::unique_ptr<Panel>> PanelRegistration::make_all() {
  std::vector<std::unique_ptr<Panel>> panels;
  for (const Make& make : makers()) panels.push_back(make());
  std::ranges::sort(panels, {}, [](const std::unique_ptr<Panel>& panel) {
    const PanelInfo& info = panel->info();
    return std::tuple(info.region, info.order, info.name);
  });
  return panels;
}

}  // namespace hearth
