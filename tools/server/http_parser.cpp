#include "tools/server/http_parser.h"

#include <algorithm>
#include <charconv>

#include "tools/server/header_text.h"

namespace hearth {
namespace {

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Clients that think this is a proxy send a whole URL; only the part after the host counts here.
std::string_view without_host(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const size_t path = target.find_first_of("/?", scheme.size());
    return path == std::string_view::npos || target[path] == '?' ? "/" : target.substr(path);
  }
  return target;
}

bool is_target(std::string_view text) {
  return !text.empty() && text.front() == '/' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Control characters are not allowed in a value; bytes above 127 are, and are not interpreted.
bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

// All of `text` as a number, digits only.
bool read_number(std::string_view text, int base, uint64_t& value) {
  if (text.empty()) return false;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return failed == std::errc() && end == text.data() + text.size();
}

// Whether a list such as "keep-alive, Upgrade" contains `item`, which must be in lower case.
bool list_has(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (lower_case(without_spaces(list.substr(0, comma))) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

constexpr std::string_view kLineEnd = "\r\n";

// How many bytes a part has at least, whose `terminator` is at `end` or has not arrived: the last
// bytes may be the first of the terminator. So that limits do not depend on how bytes arrive.
size_t least_bytes(std::string_view input, size_t end, std::string_view terminator) {
  return end != std::string_view::npos
             ? end
             : input.size() - std::min(input.size(), terminator.size() - 1);
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i, 3);
    const auto [end, error] =
        std::from_chars(digits.data() + 1, digits.data() + digits.size(), byte, 16);
    const bool escape = digits.size() == 3 && digits[0] == '%' &&
                        end == digits.data() + digits.size() && error == std::errc();
    decoded += escape ? static_cast<char>(byte) : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

HttpParser::State HttpParser::fail(int status, std::string message) {
  error_ = {status, std::move(message)};
  return state_ = State::kFailed;
}

HttpParser::State HttpParser::feed(std::string& input) {
  // Taken bytes are erased once, in the end: a body may consist of millions of tiny chunks.
  std::string_view rest(input);
  if (state_ == State::kHead) take_head(rest);
  // Continues while something is taken: a chunk may follow a chunk.
  for (size_t before = rest.size() + 1; rest.size() < before;) {
    before = rest.size();
    if (state_ == State::kBody) read_body(rest);
    if (state_ == State::kChunkSize) read_chunk_size(rest);
    if (state_ == State::kChunk || state_ == State::kChunkEnd) read_chunk(rest);
    if (state_ == State::kTrailers) read_trailer(rest);
  }
  input.erase(0, input.size() - rest.size());
  return state_;
}

HttpParser::State HttpParser::take_head(std::string_view& input) {
  // Some clients end a body with an empty line; no real client sends many.
  constexpr size_t kMostEmptyLines = 4;
  while (input.starts_with(kLineEnd)) {
    if (++empty_lines_ > kMostEmptyLines)
      return fail(400, "there are too many empty lines before the request");
    input.remove_prefix(kLineEnd.size());
  }
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const size_t end = input.find(kHeadEnd);
  if (least_bytes(input, end, kHeadEnd) > limits_.head_bytes) {
    return input.find(kLineEnd) > limits_.target_bytes + 32
               ? fail(414, "the address is too long")
               : fail(431, "the headers are too large");
  }
  if (end == std::string_view::npos) return state_;
  const std::string_view head = input.substr(0, end + kLineEnd.size());
  input.remove_prefix(end + kHeadEnd.size());
  return read_head(head);
}

HttpParser::State HttpParser::read_head(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const size_t end = head.find(kLineEnd);
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (!(first ? read_request_line(line) : read_header(line))) return state_;
    first = false;
  }
  return plan_body();
}

bool HttpParser::read_request_line(std::string_view line) {
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end) {
    fail(400, "the request line is broken");
    return false;
  }
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target =
      without_host(line.substr(method_end + 1, target_end - method_end - 1));
  const std::string_view version = line.substr(target_end + 1);
  if (!is_token(method) || method.size() > 32) {
    fail(400, "the request line is broken");
  } else if (target.size() > limits_.target_bytes) {
    fail(414, "the address is too long");
  } else if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    fail(version.starts_with("HTTP/") ? 505 : 400, "only HTTP/1.0 and HTTP/1.1 are supported");
  } else if (!is_target(target) && target != "*") {
    fail(400, "the address is broken");
  }
  if (state_ == State::kFailed) return false;
  const size_t question = std::min(target.find('?'), target.size());
  request_.method = method;
  request_.path = target.substr(0, question);
  request_.query = target.substr(std::min(question + 1, target.size()));
  request_.http_1_0 = version == "HTTP/1.0";
  return true;
}

bool HttpParser::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  // Programs disagree about a space before the colon and about folded lines.
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    fail(400, "a header is broken");
    return false;
  }
  const std::string_view value = without_spaces(line.substr(colon + 1));
  if (!is_field_value(value)) {
    fail(400, "a header has control characters");
    return false;
  }
  if (request_.headers.size() == limits_.headers) {
    fail(431, "there are too many headers");
    return false;
  }
  request_.headers.emplace_back(lower_case(line.substr(0, colon)), value);
  return true;
}

HttpParser::State HttpParser::plan_body() {
  const std::string_view connection = request_.header("connection");
  request_.keep_alive =
      request_.http_1_0 ? list_has(connection, "keep-alive") : !list_has(connection, "close");
  const auto count = [this](std::string_view name) {
    return std::count_if(request_.headers.begin(), request_.headers.end(),
                         [&](const auto& header) { return header.first == name; });
  };
  if (count("host") > 1 || (count("host") == 0 && !request_.http_1_0))
    return fail(400, "there must be one Host header");
  const auto lengths = count("content-length"), encodings = count("transfer-encoding");
  if (lengths + encodings > 1) return fail(400, "the length of the body is given more than once");
  const std::string_view packed = request_.header("content-encoding");
  if (!packed.empty() && lower_case(packed) != "identity")
    return fail(415, "compressed bodies are not supported");
  if (encodings == 1) {
    // HTTP/1.0 has no chunks: a proxy would take them for the body.
    if (request_.http_1_0) return fail(400, "HTTP/1.0 has no transfer encodings");
    if (lower_case(request_.header("transfer-encoding")) != "chunked")
      return fail(501, "the only transfer encoding supported is chunked");
    state_ = State::kChunkSize;
  } else if (lengths == 1) {
    const std::string_view length = request_.header("content-length");
    if (!read_number(length, 10, left_)) {
      const bool digits = !length.empty() && std::all_of(length.begin(), length.end(), [](char c) {
        return c >= '0' && c <= '9';
      });
      return digits ? fail(413, "the body is too large") : fail(400, "Content-Length is broken");
    }
    if (left_ > limits_.body_bytes) return fail(413, "the body is too large");
    state_ = left_ > 0 ? State::kBody : State::kDone;
  } else {
    state_ = State::kDone;
  }
  expects_continue_ =
      state_ != State::kDone && lower_case(request_.header("expect")) == "100-continue";
  return state_;
}

HttpParser::State HttpParser::read_body(std::string_view& input) {
  const size_t taken = static_cast<size_t>(std::min<uint64_t>(left_, input.size()));
  // Not reserved beforehand: a client could take memory by announcing bytes that it never sends.
  request_.body.append(input.substr(0, taken));
  input.remove_prefix(taken);
  left_ -= taken;
  if (left_ == 0) state_ = State::kDone;
  return state_;
}

HttpParser::State HttpParser::read_chunk_size(std::string_view& input) {
  constexpr size_t kMostBytes = 256;  // of the line with its extensions, which are not used
  const size_t end = input.find(kLineEnd);
  if (least_bytes(input, end, kLineEnd) > kMostBytes) return fail(400, "a chunk's size is broken");
  if (end == std::string_view::npos) return state_;
  const std::string_view line = input.substr(0, end);
  // Some programs would end the line at a bare line feed, and read another body.
  if (!is_field_value(line)) return fail(400, "a chunk's size has control characters");
  const std::string_view digits = without_spaces(line.substr(0, line.find(';')));
  if (!read_number(digits, 16, left_)) return fail(400, "a chunk's size is broken");
  if (left_ > limits_.body_bytes - request_.body.size()) return fail(413, "the body is too large");
  input.remove_prefix(end + kLineEnd.size());
  return state_ = left_ > 0 ? State::kChunk : State::kTrailers;
}

HttpParser::State HttpParser::read_chunk(std::string_view& input) {
  if (state_ == State::kChunk) {
    read_body(input);
    if (left_ > 0) return state_ = State::kChunk;
    state_ = State::kChunkEnd;
  }
  if (input.size() < kLineEnd.size()) return state_;
  if (!input.starts_with(kLineEnd)) return fail(400, "a chunk does not end where it should");
  input.remove_prefix(kLineEnd.size());
  return state_ = State::kChunkSize;
}

// Trailers are skipped.
HttpParser::State HttpParser::read_trailer(std::string_view& input) {
  for (;;) {
    const size_t end = input.find(kLineEnd);
    if (least_bytes(input, end, kLineEnd) + trailer_bytes_ > limits_.head_bytes)
      return fail(431, "the trailers are too large");
    if (end == std::string_view::npos) return state_;
    if (!is_field_value(input.substr(0, end))) return fail(400, "a trailer has control characters");
    input.remove_prefix(end + kLineEnd.size());
    if (end == 0) return state_ = State::kDone;
    trailer_bytes_ += end;
  }
}

std::string_view http_status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 499:
      return "Client Closed Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace hearth
