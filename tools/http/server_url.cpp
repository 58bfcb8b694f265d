#include "tools/http/server_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace hearth {
namespace {

// Removes `prefix`, given in lower case, if the text begins with it in any case.
bool take_scheme(std::string_view& text, std::string_view prefix) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (text.size() < prefix.size() ||
      !std::ranges::equal(text.substr(0, prefix.size()), prefix, same))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A port with its colon; false if it is not one.
bool read_port(std::string_view text, std::string& port) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.size() < 2 || text.front() != ':') return false;
  const auto [stop, error] = std::from_chars(text.data() + 1, end, number);
  if (error != std::errc{} || stop != end || number == 0 || number > 65535) return false;
  port = std::to_string(number);
  return true;
}

}  // namespace

std::string ServerUrl::place() const {
  const bool colons = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", colons ? "[" : "", host, colons ? "]" : "", port);
}

std::string ServerUrl::at(std::string_view path_below) const {
  return fmt::format("{}://{}{}{}", tls ? "https" : "http", place(), path, path_below);
}

bool ServerUrl::is_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  const auto wrong = [&] {
    return invalid(fmt::format("'{}' is not an address of the form http://host:port", text));
  };
  std::string_view rest = text;
  ServerUrl url;
  url.tls = take_scheme(rest, "https://");
  const bool http = !url.tls && take_scheme(rest, "http://");
  url.port = url.tls ? "443" : http ? "80" : "8080";
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    url.path = rest.substr(slash);
    rest = rest.substr(0, slash);
    while (url.path.ends_with('/')) url.path.pop_back();
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return wrong();
    url.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    url.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  if (!port.empty() && !read_port(port, url.port)) return wrong();
  const auto odd = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '@' || c == '?' || c == '#';
  };
  if (url.host.empty() || std::ranges::any_of(url.host, odd) || std::ranges::any_of(url.path, odd))
    return wrong();
  return url;
}

}  // namespace hearth
