// The address of a server, "http://host:port/path", taken apart. Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

struct ServerUrl {
  bool tls = false;
  std::string host;  // without brackets
  std::string port;
  std::string path;  // what comes before every path of the server: "" or "/prefix"

  // "host:port", for messages.
  std::string place() const;
  // The address of a path that begins with a slash.
  std::string at(std::string_view path_below) const;
  // This machine, so that a proxy could not reach it.
  bool is_loopback() const;
};

// The port may be left out: it is 80 for http and 443 for https. So may the scheme, which is http
// then, and the port 8080, because Hearth and llama.cpp listen there.
Result<ServerUrl> parse_server_url(std::string_view text);

}  // namespace hearth
