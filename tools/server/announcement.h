// What `hearth serve` prints when it is ready. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

struct Announcement {
  std::string model, device;
  uint64_t context = 0;  // tokens per sequence
  uint32_t max_sequences = 0;
  std::string host;
  int port = 0;
  bool has_key = false;
};

std::vector<std::string> announcement_lines(const Announcement& facts);

}  // namespace hearth
