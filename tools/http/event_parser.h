// Parses server-sent events, from the bytes of a response's body. Does no I/O. An event's size is
// bounded, because the peer may be any server.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct ServerEvent {
  std::string name;  // empty if the event has none
  std::string data;
};

class EventParser {
 public:
  static constexpr size_t kMaxEventBytes = size_t{4} << 20;

  // Consumes received bytes and appends the events that are complete. Comments are skipped. An
  // error is final.
  Status push(std::string_view bytes, std::vector<ServerEvent>& events);

 private:
  void take_line(std::string_view line, std::vector<ServerEvent>& events);

  std::string line_;   // incomplete
  ServerEvent event_;  // incomplete
  bool has_data_ = false;
};

}  // namespace hearth
