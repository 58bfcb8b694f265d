// What a template renders to: text, and for every byte whether the template or the caller's data
// wrote it. A tokenizer needs the difference: only the template's own text may name control tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::jinja {

enum class Origin : std::uint8_t {
  kTemplate,  // the template's literals, and values the caller declared to be the template's
  kInput,     // data, or a mixture that cannot be told apart
};

// The bytes from the previous run's end (or 0) to `end`.
struct Run {
  std::uint32_t end = 0;
  Origin origin = Origin::kTemplate;

  bool operator==(const Run&) const = default;
};

struct Rendering {
  std::string text;
  std::vector<Run> runs;  // in order, neighbours differ, the last one ends at text.size()
};

}  // namespace hearth::jinja
