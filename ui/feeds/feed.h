// Where an EngineView comes from. Used by the window's thread alone; what an implementation does on
// threads of its own is its business. poll() never waits.
#pragma once

#include "ui/feeds/engine_view.h"

namespace hearth {

class Feed {
 public:
  virtual ~Feed() = default;
  // Overwrites what the feed knows: new_steps, missed_steps, and whatever has changed.
  virtual void poll(EngineView& view) = 0;
};

}  // namespace hearth
