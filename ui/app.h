// The dashboard as a program: opens the window, runs frames until it is closed or the script ends.
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
  std::filesystem::path state_folder;  // settings and conversations; empty: nothing is kept
  float zoom = 0;                      // 0: as remembered
  std::optional<bool> dark;            // as remembered
  double frames_per_s = 0;             // at most; 0: what suits the device

  bool demo = false;
  std::string connect, api_key;  // a server's address
  ModelChoice model;             // otherwise
  EngineHost::Measure measure;

  std::filesystem::path script, output_folder;  // files a script names are relative to the folder
  std::filesystem::path screenshot;             // after `frames` frames, and then it ends
  uint32_t frames = 0;                          // 0: until it is closed
};

// Main thread. Fails where there is no display, the script did not go as written, or a validation
// layer had something to say.
Status run_app(const AppOptions& options);

}  // namespace hearth
