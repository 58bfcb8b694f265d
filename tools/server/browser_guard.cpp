#include "tools/server/browser_guard.h"

#include <algorithm>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "tools/server/header_text.h"

namespace hearth {
namespace {

// "name" of "name:port", "[::1]" of "[::1]:port"; in lower case and without a final dot.
std::string host_name(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') + 1 : host.find(':');
  std::string name = lower_case(host.substr(0, end));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_ip_address(std::string name) {
  unsigned char bytes[sizeof(in6_addr)];
  if (name.starts_with('[') && name.ends_with(']')) {
    name = name.substr(1, name.size() - 2);
    return inet_pton(AF_INET6, name.c_str(), bytes) == 1;
  }
  return inet_pton(AF_INET, name.c_str(), bytes) == 1;
}

bool allows_host(const std::string& name, const BrowserRules& rules) {
  return std::ranges::any_of(
      rules.allowed_hosts, [&](const std::string& allowed) { return lower_case(allowed) == name; });
}

// "host:port" of "scheme://host:port"; empty for anything else.
std::string_view host_of_origin(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

// For a message: without anything that could confuse a terminal or a log.
std::string plain_ascii(std::string_view text) {
  std::string result(text.substr(0, 100));
  for (char& c : result)
    if (c <= 0x20 || c >= 0x7f) c = '?';
  return result;
}

}  // namespace

std::string refusal_of_host(const HttpRequest& head, const BrowserRules& rules) {
  const std::string_view host = head.header("host");
  // Only HTTP/1.0 may have no Host header, and no browser speaks that.
  if (host.empty()) return {};
  // A name that somebody else controls could point here; an address cannot.
  const std::string name = host_name(host);
  if (is_ip_address(name) || name == "localhost" || name.ends_with(".localhost") ||
      allows_host(name, rules) || allows_host("*", rules))
    return {};
  return fmt::format(
      "the server does not answer to the name '{}': start it with --allow-host {} or --api-key",
      plain_ascii(name), plain_ascii(name));
}

std::string refusal_of_origin(const HttpRequest& head, const BrowserRules& rules) {
  if (rules.cors_origin == "*") return {};
  const std::string_view origin = head.header("origin");
  if (origin.empty()) {
    // Pictures, scripts and the like of other sites come without an Origin; a link that somebody
    // follows is fine.
    const std::string_view site = head.header("sec-fetch-site");
    const bool foreign = site == "cross-site" || site == "same-site";
    if (!foreign || head.header("sec-fetch-mode") == "navigate") return {};
    return "web pages of other sites may not use this server: start it with --cors or --api-key";
  }
  const std::string_view host = host_of_origin(origin);
  if (!host.empty() && (lower_case(host) == lower_case(head.header("host")) ||
                        allows_host(host_name(host), rules) || origin == rules.cors_origin))
    return {};
  return fmt::format(
      "pages from '{}' may not use this server: start it with --cors {} or --api-key",
      plain_ascii(origin), plain_ascii(origin));
}

bool browser_sent_no_json(const HttpRequest& head) {
  const bool browser = std::ranges::any_of(head.headers, [](const auto& header) {
    return header.first == "origin" || header.first.starts_with("sec-fetch-");
  });
  const std::string_view type = head.header("content-type");
  return browser && lower_case(type.substr(0, type.find_first_of("; \t"))) != "application/json";
}

}  // namespace hearth
