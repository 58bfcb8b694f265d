#include "ui/feeds/event_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace hearth {
namespace {

std::string lowercase(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::string refusal(int status) {
  switch (status) {
    case 401:
      return "the server requires an API key: pass it with --api-key";
    case 404:
      return "the server has no /events endpoint: is it `hearth serve`?";
    case 503:
      return "the server is not ready: it is loading its model or shutting down";
    default:
      return fmt::format("the server answered with HTTP status {}", status);
  }
}

}  // namespace

Result<HttpAddress> parse_http_address(std::string_view text) {
  const auto wrong = [&] {
    return invalid(fmt::format("'{}' is not an address of the form http://host:port", text));
  };
  std::string_view rest = text;
  if (lowercase(rest.substr(0, 8)) == "https://")
    return invalid("`hearth serve` speaks http, not https: connect to http://host:port");
  if (lowercase(rest.substr(0, 7)) == "http://") rest.remove_prefix(7);
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    if (slash + 1 != rest.size() && rest.substr(slash) != "/events") return wrong();
    rest = rest.substr(0, slash);
  }
  HttpAddress address{.port = "8080"};
  std::string_view port;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return wrong();
    address.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : rest.substr(colon);
  }
  if (!port.empty()) {
    uint32_t number = 0;
    const char* const end = port.data() + port.size();
    const auto [stop, error] = std::from_chars(port.data() + 1, end, number);
    if (port[0] != ':' || port.size() < 2 || error != std::errc{} || stop != end || number == 0 ||
        number > 65535)
      return wrong();
    address.port = std::to_string(number);
  }
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '@'; };
  if (address.host.empty() || std::ranges::any_of(address.host, odd)) return wrong();
  const bool colons = address.host.find(':') != std::string::npos;
  address.text =
      fmt::format("{}{}{}:{}", colons ? "[" : "", address.host, colons ? "]" : "", address.port);
  return address;
}

Status EventReader::push(std::string_view bytes, std::vector<ServerEvent>& events) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::kHead: {
        // A head is short, so a byte at a time is fast enough.
        pending_ += bytes.front();
        bytes.remove_prefix(1);
        if (pending_.ends_with("\r\n\r\n")) HEARTH_TRY(parse_head());
        if (pending_.size() > kMaxHeadBytes) return invalid("the server's reply is not HTTP");
        break;
      }
      case State::kBody:
        HEARTH_TRY(parse_body(bytes, events));
        bytes = {};
        break;
      case State::kChunkSize:
      case State::kChunkEnd: {
        pending_ += bytes.front();
        bytes.remove_prefix(1);
        if (pending_.size() > 64) return invalid("the server's reply has a malformed chunk");
        if (!pending_.ends_with('\n')) break;
        if (state_ == State::kChunkSize) {
          HEARTH_TRY(
              parse_chunk_size(trimmed(std::string_view(pending_).substr(0, pending_.size() - 1))));
        } else {
          if (pending_ != "\r\n") return invalid("the server's reply has a malformed chunk");
          state_ = State::kChunkSize;
        }
        pending_.clear();
        break;
      }
      case State::kChunk: {
        const size_t count =
            static_cast<size_t>(std::min<uint64_t>(chunk_bytes_left_, bytes.size()));
        HEARTH_TRY(parse_body(bytes.substr(0, count), events));
        bytes.remove_prefix(count);
        chunk_bytes_left_ -= count;
        if (chunk_bytes_left_ == 0) state_ = State::kChunkEnd;
        break;
      }
      case State::kEnded:
        return {};
    }
  }
  return {};
}

Status EventReader::parse_head() {
  const std::string head = lowercase(pending_);
  pending_.clear();
  int status = 0;
  if (!head.starts_with("http/1.") || head.size() < 13 ||
      std::from_chars(head.data() + 9, head.data() + 12, status).ec != std::errc{})
    return invalid("the server's reply is not HTTP");
  if (status != 200) return invalid(refusal(status));
  if (head.find("\r\ncontent-type: text/event-stream") == std::string::npos)
    return invalid("the server's /events is not an event stream: is it `hearth serve`?");
  state_ = head.find("\r\ntransfer-encoding: chunked") != std::string::npos ? State::kChunkSize
                                                                            : State::kBody;
  return {};
}

Status EventReader::parse_chunk_size(std::string_view line) {
  uint64_t size = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, size, 16);
  if (line.empty() || error != std::errc{} || (stop != end && *stop != ';'))
    return invalid("the server's reply has a malformed chunk");
  chunk_bytes_left_ = size;
  state_ = size == 0 ? State::kEnded : State::kChunk;
  return {};
}

Status EventReader::parse_body(std::string_view bytes, std::vector<ServerEvent>& events) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    line_ += bytes.substr(0, newline);
    if (line_.size() + event_.data.size() > kMaxEventBytes)
      return invalid("the server sent an event of more than 4 MiB");
    if (newline == std::string_view::npos) return {};
    bytes.remove_prefix(newline + 1);
    parse_line(trimmed(line_), events);
    line_.clear();
  }
  return {};
}

void EventReader::parse_line(std::string_view line, std::vector<ServerEvent>& events) {
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : trimmed(line.substr(colon + 1));
  if (field == "event") event_.name = value;
  if (field != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace hearth
