#include "tools/server/announcement.h"

#include <fmt/format.h>

#include "tools/server/http_listener.h"

namespace hearth {
namespace {

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// An address that a browser on this machine can open, where the server listens on all of them.
std::string local_host(const std::string& host) {
  return host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host;
}

}  // namespace

std::vector<std::string> announcement_lines(const Announcement& facts) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} on {}", facts.model, facts.device));
  lines.push_back(fmt::format("up to {} sequence{} at a time, {} tokens each", facts.max_sequences,
                              facts.max_sequences == 1 ? "" : "s", facts.context));
  lines.push_back(fmt::format("listening on http://{}", host_and_port(facts.host, facts.port)));
  const std::string local = host_and_port(local_host(facts.host), facts.port);
  lines.push_back(fmt::format("OpenAI's API at http://{}/v1, chat page at http://{}/{}", local,
                              local, facts.has_key ? "#key=KEY with your key" : ""));
  if (!facts.has_key && !is_loopback(facts.host))
    lines.push_back(
        "no API key is set: anyone who can reach this machine can use the model (--api-key)");
  return lines;
}

}  // namespace hearth
