// The dashboard as a program: opens the window and draws frames until it is closed or the script
// ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/result.h"
#include "ui/engine_host.h"
#include "ui/window/window.h"

namespace hearth {

struct AppOptions {
  WindowOptions window;
  std::filesystem::path state_folder;  // settings and conversations; empty: nothing is saved
  float zoom = 0;                      // 0: the saved setting
  std::optional<bool> dark;            // unset: the saved setting
  std::string view;                    // "simple", "engine" or "class"; empty: as last time
  double frames_per_s = 0;             // maximum; 0: what suits the device

  bool demo = false;
  std::string connect, api_key;  // URL of a server to watch
  ModelChoice model;             // opened unless `demo` or `connect` is set
  EngineHost::Measure measure;
  std::optional<PolicyPair> compare;       // to open in the Compare panel
  std::shared_ptr<ViewHistory> recording;  // to show instead of an engine
  std::string compared_requests{kComparedRequests};
  std::string lesson;  // to open in the Lessons panel; empty: none

  std::filesystem::path script, output_folder;  // a script's files are relative to the folder
  std::filesystem::path screenshot;             // PNG file to write after `frames` frames
  uint32_t frames = 0;                          // exit after this many; 0: run until closed
};

// Call from the main thread. Fails if there is no display, a script step fails, or a validation
// layer reports something.
Status run_app(const AppOptions& options);

}  // namespace hearth
