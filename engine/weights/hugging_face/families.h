// The families of models whose Hugging Face folders can be read: their differences as data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::hugging_face {

// Which layers have sliding-window attention, if config.json does not list them.
enum class WindowRule {
  kAll,           // all layers
  kFromLayer,     // those from max_window_layers on, if use_sliding_window
  kAllButEveryN,  // all but each N-th, N = sliding_window_pattern
};

// The value of a field that config.json leaves out, as in the model's own code.
struct FieldDefault {
  std::string_view field;
  double value;
};

struct Family {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // GGUF's name, before every key
  WindowRule window_rule;
  std::string_view activation;  // prefix of the supported hidden_act
  bool post_norms;              // has norms after attention and feed-forward, too
  bool tied_by_default;  // the embedding is the output matrix unless config.json says otherwise
  std::span<const FieldDefault> defaults;

  std::optional<double> default_of(std::string_view field) const;
};

// Null for an unsupported family.
const Family* find_family(std::string_view model_type);
// "gemma2, gemma3_text, ..."
std::string family_names();

}  // namespace hearth::hugging_face
