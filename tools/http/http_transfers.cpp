#include "tools/http/http_transfers.h"

#include <utility>

#include <fmt/format.h>

#ifdef HEARTH_HAS_CURL
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>

#include <curl/curl.h>
#endif

namespace hearth {
namespace {

constexpr size_t kMaxWholeBytes = size_t{16} << 20;

// Collects a whole response.
class WholeHandler final : public TransferHandler {
 public:
  explicit WholeHandler(WholeResponse& response) : response_(response) {}
  bool on_head(const TransferHead& head) override {
    response_.head = head;
    return true;
  }
  bool on_body(std::string_view bytes) override {
    too_long_ = response_.body.size() + bytes.size() > kMaxWholeBytes;
    if (too_long_) return false;
    response_.body += bytes;
    return true;
  }
  void on_end(const TransferEnd& end) override {
    response_.end = end;
    if (too_long_)
      response_.end.message =
          fmt::format("the server's answer is longer than {} MiB", kMaxWholeBytes >> 20);
    ended_ = true;
  }
  bool ended() const { return ended_; }

 private:
  WholeResponse& response_;
  bool ended_ = false, too_long_ = false;
};

}  // namespace

WholeResponse fetch(HttpTransfers& transfers, TransferRequest request,
                    const std::function<bool()>& go_on) {
  WholeResponse response;
  WholeHandler handler(response);
  transfers.start(std::move(request), handler);
  while (!handler.ended()) {
    transfers.run(0.1);
    if (go_on && !handler.ended() && !go_on()) {
      response.end = {TransferFailure::kStopped, "interrupted"};
      transfers.abandon(handler);
      break;
    }
  }
  return response;
}

#ifdef HEARTH_HAS_CURL
namespace {

using TransferClock = std::chrono::steady_clock;

// Once per process, before other threads use libcurl.
bool curl_ready() {
  static const bool ready = [] {
    // Writing to a server that is gone must not end the program.
    struct sigaction current = {};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
      signal(SIGPIPE, SIG_IGN);
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  }();
  return ready;
}

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct CurlTransfer {
  TransferRequest request;
  TransferHandler* handler = nullptr;
  std::unique_ptr<CURL, FreeEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;
  TransferClock::time_point head_deadline = TransferClock::time_point::max();
  bool has_head = false, stopped = false, head_is_late = false;
  char message[CURL_ERROR_SIZE] = {};
};

TransferHead head_of(CURL* easy) {
  TransferHead head;
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
  const char* type = nullptr;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) head.content_type = type;
  curl_off_t seconds = 0;
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) head.retry_after_seconds = static_cast<double>(seconds);
  return head;
}

// A line of the headers. The last one is empty; those of interim responses (1xx) come before it.
size_t take_header(char* bytes, size_t size, size_t count, void* user) {
  CurlTransfer& transfer = *static_cast<CurlTransfer*>(user);
  const std::string_view line(bytes, size * count);
  const bool is_last = line == "\r\n" || line == "\n";
  if (!is_last || transfer.has_head) return line.size();  // trailers follow the body
  const TransferHead head = head_of(transfer.easy.get());
  if (head.status < 200) return line.size();
  transfer.has_head = true;
  transfer.stopped = !transfer.handler->on_head(head);
  return transfer.stopped ? 0 : line.size();
}

size_t take_body(char* bytes, size_t size, size_t count, void* user) {
  CurlTransfer& transfer = *static_cast<CurlTransfer*>(user);
  const std::string_view piece(bytes, size * count);
  transfer.stopped = !transfer.handler->on_body(piece);
  return transfer.stopped ? 0 : piece.size();
}

// A server without TLS takes the first bytes for a request and waits for more.
TransferEnd no_answer(CURL* easy) {
  const char* url = nullptr;
  curl_off_t encrypted = 0;  // microseconds until then, 0 if it did not happen
  curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
  curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &encrypted);
  if (url != nullptr && std::string_view(url).starts_with("https:") && encrypted == 0)
    return {TransferFailure::kTimeout, "no TLS connection; is it an http:// address?"};
  return {TransferFailure::kTimeout, "no answer"};
}

TransferEnd describe_end(const CurlTransfer& transfer, CURLcode code) {
  if (transfer.stopped) return {TransferFailure::kStopped, "stopped"};
  if (transfer.head_is_late) return no_answer(transfer.easy.get());
  const std::string detail =
      transfer.message[0] != '\0' ? transfer.message : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK:
      return {};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {TransferFailure::kUnreachable, "cannot resolve the host name"};
    case CURLE_COULDNT_CONNECT: {
      long number = 0;
      curl_easy_getinfo(transfer.easy.get(), CURLINFO_OS_ERRNO, &number);
      return {TransferFailure::kUnreachable,
              number != 0 ? std::strerror(static_cast<int>(number)) : detail};
    }
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return {TransferFailure::kTls,
              fmt::format("the certificate is not trusted ({}); to trust it, name its file in "
                          "SSL_CERT_FILE",
                          detail)};
    case CURLE_SSL_CONNECT_ERROR:
      return {TransferFailure::kTls, fmt::format("no TLS connection ({})", detail)};
    case CURLE_OPERATION_TIMEDOUT:
      return no_answer(transfer.easy.get());
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return {TransferFailure::kNotHttp, "the server's reply is not HTTP"};
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return {TransferFailure::kBroken, "the server closed the connection"};
    default:
      return {TransferFailure::kBroken, detail};
  }
}

long to_milliseconds(double seconds) { return static_cast<long>(seconds * 1000 + 0.5); }

}  // namespace

class HttpTransfers::Implementation {
 public:
  Implementation() : multi_(curl_multi_init()) {}
  ~Implementation() {
    for (CurlTransfer& transfer : transfers_) curl_multi_remove_handle(multi_, transfer.easy.get());
    transfers_.clear();
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  bool ok() const { return multi_ != nullptr; }
  void wake() { curl_multi_wakeup(multi_); }

  void start(TransferRequest request, TransferHandler& handler) {
    waiting_.push_back({std::move(request), &handler});
  }

  void abandon(const TransferHandler& handler) {
    std::erase_if(waiting_, [&](const auto& entry) { return entry.second == &handler; });
    for (auto place = transfers_.begin(); place != transfers_.end(); ++place)
      if (place->handler == &handler) {
        curl_multi_remove_handle(multi_, place->easy.get());
        transfers_.erase(place);
        return;
      }
  }

  void run(double seconds) {
    start_waiting();
    int running = 0;
    curl_multi_perform(multi_, &running);
    if (!finish_ended() && waiting_.empty()) {
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>(to_milliseconds(patience(seconds))),
                      nullptr);
      curl_multi_perform(multi_, &running);
    }
    end_late_heads();
    finish_ended();
  }

 private:
  // Not in start(), which handlers may call while libcurl is calling them.
  void start_waiting() {
    while (!waiting_.empty()) {
      CurlTransfer& transfer = transfers_.emplace_back();
      transfer.request = std::move(waiting_.front().first);
      transfer.handler = waiting_.front().second;
      waiting_.pop_front();
      transfer.easy.reset(curl_easy_init());
      if (transfer.easy == nullptr ||
          (set_up(transfer), curl_multi_add_handle(multi_, transfer.easy.get())) != CURLM_OK) {
        TransferHandler* const handler = transfer.handler;
        transfers_.pop_back();
        handler->on_end({TransferFailure::kBroken, "libcurl cannot start a transfer"});
      }
    }
  }

  static void set_up(CurlTransfer& transfer) {
    CURL* const easy = transfer.easy.get();
    const TransferRequest& request = transfer.request;
    const auto add_header = [&](const std::string& line) {
      curl_slist* const list = curl_slist_append(transfer.headers.get(), line.c_str());
      if (list == nullptr) return;
      static_cast<void>(transfer.headers.release());
      transfer.headers.reset(list);
    };
    if (!request.key.empty()) add_header("Authorization: Bearer " + request.key);
    for (const std::string& header : request.headers) add_header(header);
    if (!request.body.empty()) {
      add_header("Content-Type: application/json");
      add_header("Expect:");  // a large body need not wait for permission
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
    }
    curl_easy_setopt(easy, CURLOPT_URL, request.server.at(request.path).c_str());
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.message);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "hearth");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    if (transfer.headers) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, to_milliseconds(request.connect_seconds));
    if (request.total_seconds > 0)
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, to_milliseconds(request.total_seconds));
    if (request.head_seconds > 0)
      transfer.head_deadline =
          TransferClock::now() + std::chrono::duration_cast<TransferClock::duration>(
                                     std::chrono::duration<double>(request.head_seconds));
    // Detects a peer that vanished without closing the connection within about half a minute.
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name being resolved
#endif
    if (request.server.is_loopback()) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    // As OpenSSL's own programs do.
    if (const char* file = std::getenv("SSL_CERT_FILE"); file != nullptr && *file != '\0')
      curl_easy_setopt(easy, CURLOPT_CAINFO, file);
  }

  // Calls on_end() for what has ended; false if nothing has.
  bool finish_ended() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const easy = message->easy_handle;
      const CURLcode code = message->data.result;  // gone once the handle is removed
      curl_multi_remove_handle(multi_, easy);
      finish(easy, code);
      any = true;
    }
    return any;
  }

  void finish(CURL* easy, CURLcode code) {
    const auto place = std::ranges::find_if(
        transfers_, [&](const CurlTransfer& transfer) { return transfer.easy.get() == easy; });
    if (place == transfers_.end()) return;
    const TransferEnd end = describe_end(*place, code);
    TransferHandler* const handler = place->handler;
    transfers_.erase(place);
    handler->on_end(end);
  }

  double patience(double seconds) const {
    const TransferClock::time_point now = TransferClock::now();
    for (const CurlTransfer& transfer : transfers_)
      if (!transfer.has_head && transfer.head_deadline != TransferClock::time_point::max())
        seconds =
            std::min(seconds, std::chrono::duration<double>(transfer.head_deadline - now).count());
    return std::max(seconds, 0.0);
  }

  void end_late_heads() {
    const TransferClock::time_point now = TransferClock::now();
    for (auto place = transfers_.begin(); place != transfers_.end();) {
      CurlTransfer& transfer = *place++;
      if (transfer.has_head || now < transfer.head_deadline) continue;
      transfer.head_is_late = true;
      CURL* const easy = transfer.easy.get();
      curl_multi_remove_handle(multi_, easy);
      finish(easy, CURLE_OPERATION_TIMEDOUT);
    }
  }

  CURLM* multi_;
  std::list<CurlTransfer> transfers_;  // addresses must last
  std::deque<std::pair<TransferRequest, TransferHandler*>> waiting_;
};

bool HttpTransfers::available() { return true; }

Result<std::unique_ptr<HttpTransfers>> HttpTransfers::create() {
  if (curl_ready())
    if (auto implementation = std::make_unique<Implementation>(); implementation->ok())
      return std::unique_ptr<HttpTransfers>(new HttpTransfers(std::move(implementation)));
  return Error{ErrorKind::kInternal, "libcurl cannot be started"};
}

#else

class HttpTransfers::Implementation {
 public:
  void start(TransferRequest, TransferHandler&) {}
  void abandon(const TransferHandler&) {}
  void run(double) {}
  void wake() {}
};

bool HttpTransfers::available() { return false; }

Result<std::unique_ptr<HttpTransfers>> HttpTransfers::create() {
  return unsupported(
      "this hearth was built without libcurl: install libcurl4-openssl-dev (or run tools/setup) "
      "and "
      "build again");
}

#endif

HttpTransfers::HttpTransfers(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
HttpTransfers::~HttpTransfers() = default;
void HttpTransfers::start(TransferRequest request, TransferHandler& handler) {
  implementation_->start(std::move(request), handler);
}
void HttpTransfers::abandon(const TransferHandler& handler) { implementation_->abandon(handler); }
void HttpTransfers::run(double seconds) { implementation_->run(seconds); }
void HttpTransfers::wake() { implementation_->wake(); }

}  // namespace hearth
