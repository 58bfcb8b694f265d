// Options that mean the same in every command that has them.
#pragma once

#include <string>

#include "tools/options/options.h"

namespace hearth {

inline Option& add_model_option(Options& options, std::string* model) {
  return options
      .add("-m,--model MODEL", model,
           "A .gguf file, a Hugging Face folder or a name that hearth list shows; without it, the "
           "built-in model")
      .check([](const std::string& name) {
        return name.empty() ? "the name is empty; leave -m out for the built-in model" : "";
      });
}

inline Option& add_device_option(Options& options, std::string* device) {
  return options.add("-d,--device NAME", device, "Device to run on, by index or part of its name");
}

inline Option& add_json_option(Options& options, bool* json) {
  return options.add("--json", json, "Print one JSON object");
}

// For Option::check(): a value must not be empty, as from an unset shell variable.
inline std::string check_file_name(const std::string& name) {
  return name.empty() ? "the file name is empty" : "";
}
inline std::string check_not_empty(const std::string& value) {
  return value.empty() ? "the value is empty" : "";
}

}  // namespace hearth
