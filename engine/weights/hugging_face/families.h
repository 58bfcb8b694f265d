// The families of models whose Hugging Face folders are read: what differs between them, as data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::hugging_face {

// Which layers look back only over the window, where config.json does not list them.
enum class WindowRule {
  kAll,           // all of them
  kFromLayer,     // those from max_window_layers on, if use_sliding_window
  kAllButEveryN,  // all but each N-th, N = sliding_window_pattern
};

// What a field is where config.json leaves it out, as the model's own code has it.
struct FieldDefault {
  std::string_view field;
  double value;
};

struct Family {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // GGUF's name, before every key
  WindowRule window_rule;
  std::string_view activation;  // what the name of hidden_act begins with
  bool post_norms;              // norms after attention and feed-forward too, as gemma has them
  bool tied_by_default;         // the embedding is the output matrix unless config.json says no
  std::span<const FieldDefault> defaults;

  std::optional<double> default_of(std::string_view field) const;
};

// Null for a family that is not read.
const Family* find_family(std::string_view model_type);
// "gemma2, gemma3_text, ..."
std::string family_names();

}  // namespace hearth::hugging_face
