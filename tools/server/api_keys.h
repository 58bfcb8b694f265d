// The keys of which a client must send one. Immutable after creation: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class ApiKeys {
 public:
  ApiKeys() = default;  // none: every client is admitted
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  bool empty() const { return keys_.empty(); }
  // Whether an Authorization header ("Bearer KEY") has one of the keys. How long it takes tells
  // nothing about them: every key is compared with every byte of the header.
  bool admit(std::string_view authorization) const;
  // Whether this is one of the keys, in the same way.
  bool admit_key(std::string_view key) const { return keys_.empty() || number_of(key) != 0; }
  // The number of the key that either header has, from 1; 0: none. Takes as long for every header.
  uint32_t client(std::string_view authorization, std::string_view key) const;

 private:
  uint32_t number_of(std::string_view key) const;

  std::vector<std::string> keys_;
};

// The keys in a text with one per line. Empty lines and those that begin with '#' are skipped, as
// are spaces around a key, which no client could send.
std::vector<std::string> parse_api_keys(std::string_view text);
// The same from a file; a file without keys is an error.
Result<std::vector<std::string>> read_api_keys(const std::string& path);

}  // namespace hearth
