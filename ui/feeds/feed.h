// Where an EngineView comes from. Call only from the window's thread. poll() never blocks;
// implementations read from slow sources on threads of their own.
#pragma once

#include "ui/feeds/engine_view.h"

namespace hearth {

class Feed {
 public:
  virtual ~Feed() = default;
  // Overwrites new_steps, missed_steps, and every other field the feed has news of.
  virtual void poll(EngineView& view) = 0;
};

}  // namespace hearth
