// Keeps web pages away from a server that asks for no key. A page that somebody visits can make
// the browser send requests to addresses on their machine or network: across sites, or after
// pointing its own name at this machine (DNS rebinding). Browsers tell with the Host and Origin
// headers, which pages cannot forge. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/server/http_parser.h"

namespace hearth {

struct BrowserRules {
  // Names under which the server may be addressed, besides IP addresses and localhost; "*": any.
  // Pages of a name that is listed may call, too.
  std::vector<std::string> allowed_hosts;
  std::string cors_origin;  // an Origin whose pages may call, or "*"
};

// The reason why a request must not be served, as the reply says it; empty if it may.
std::string refusal_of_host(const HttpRequest& head, const BrowserRules& rules);
std::string refusal_of_origin(const HttpRequest& head, const BrowserRules& rules);

// A page of another site can send any text unasked, but not JSON: for that a browser asks first.
// True for a request from a browser whose body does not claim to be JSON.
bool browser_sent_no_json(const HttpRequest& head);

}  // namespace hearth
