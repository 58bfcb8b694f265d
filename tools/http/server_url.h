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

// The scheme may be left out (http), and so may the port: 8080 for http, because Hearth and
// llama.cpp listen there, and 443 for https.
Result<ServerUrl> parse_server_url(std::string_view text);

}  // namespace hearth
