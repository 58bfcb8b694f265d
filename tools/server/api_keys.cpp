#include "tools/server/api_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/host/read_file.h"
#include "tools/server/header_text.h"

namespace hearth {
namespace {

// Looks at all of `given`, whatever the result.
unsigned key_difference(std::string_view given, std::string_view key) {
  unsigned bits = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    bits |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  return bits;
}

// The key of an Authorization header; empty if it has none.
std::string_view bearer_key(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (lower_case(authorization.substr(0, kScheme.size())) != kScheme) return {};
  return authorization.substr(kScheme.size());
}

}  // namespace

bool ApiKeys::admit(std::string_view authorization) const {
  return admit_key(bearer_key(authorization));
}

uint32_t ApiKeys::number_of(std::string_view given) const {
  uint32_t found = 0, number = 0;
  for (const std::string& key : keys_) {
    ++number;
    found |= key_difference(given, key) == 0 && found == 0 ? number : 0;
  }
  return found;
}

uint32_t ApiKeys::client(std::string_view authorization, std::string_view key) const {
  const uint32_t bearer = number_of(bearer_key(authorization));
  const uint32_t given = number_of(key);
  return bearer != 0 ? bearer : given;
}

std::vector<std::string> parse_api_keys(std::string_view text) {
  std::vector<std::string> keys;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view key = without_spaces(line);
    if (!key.empty() && key.front() != '#') keys.emplace_back(key);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return keys;
}

Result<std::vector<std::string>> read_api_keys(const std::string& path) {
  constexpr uint64_t kMostBytes = 1 << 20;  // thousands of keys
  HEARTH_ASSIGN(const std::string text, read_file(path, {.most_bytes = kMostBytes}));
  std::vector<std::string> keys = parse_api_keys(text);
  if (keys.empty()) return Error{ErrorKind::kInvalid, fmt::format("{}: has no key in it", path)};
  return keys;
}

}  // namespace hearth
