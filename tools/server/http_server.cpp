#include "tools/server/http_server.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "tools/server/alarm.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/http_listener.h"
#include "tools/server/request_gate.h"

namespace hearth {
namespace {

// For clients to read that their request was cut off, before their connections are.
constexpr auto kFarewellTime = std::chrono::milliseconds(200);

HttpClock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(seconds));
}

BrowserRules browser_rules(const ServerOptions& options) {
  BrowserRules rules{.allowed_hosts = options.allowed_hosts, .cors_origin = options.cors_origin};
  rules.allowed_hosts.push_back(options.host);
  return rules;
}

}  // namespace

class HttpServer::Implementation {
 public:
  explicit Implementation(ServerOptions options)
      : options_(std::move(options)),
        gate_(ApiKeys(options_.api_keys), browser_rules(options_)),
        state_(options_.request_seconds, options_.comment_seconds) {
    if (options_.control) state_.allow_control();
  }
  // The listener is destroyed next and waits for its threads, so each is told to end first.
  ~Implementation() {
    state_.cut_off();
    state_.end_events();
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  Status listen() {
    HEARTH_ASSIGN(
        listener_,
        HttpListener::create(
            {.host = options_.host,
             .port = options_.port,
             .limits = {.body_bytes = options_.most_body_bytes},
             .write = {.time = to_duration(options_.write_seconds),
                       .backlog_bytes = static_cast<size_t>(options_.backlog_bytes)},
             .bodies_bytes = options_.bodies_bytes,
             .most_connections = options_.most_connections,
             .read_time = to_duration(options_.read_seconds)},
            {.admit = [this](const HttpRequest& head,
                             HttpReply& reply) { return admit(head, reply); },
             .handle = [this](HttpRequest& request, HttpReply& reply) { handle(request, reply); },
             .refuse = [this](const HttpError& error,
                              HttpReply& reply) { refuse_bytes(error, reply); }}));
    return {};
  }

  int port() const { return listener_->port(); }
  void serve(const ServedModel& model) { state_.serve(model); }
  void fail(std::string reason) { state_.fail(std::move(reason)); }
  void drain(double seconds) {
    listener_->stop_keeping_alive();
    const Alarm too_late(to_duration(seconds) - kFarewellTime, [this] {
      state_.cut_off();
      state_.end_events();
      // Clients that are told so still have to read it.
      std::this_thread::sleep_for(kFarewellTime);
      listener_->abort();
    });
    if (const ServedModel* model = state_.model()) model->engine.drain();
    state_.end_events();
    listener_->close();
  }

 private:
  static const Route* route_of(const HttpRequest& head) {
    return find_route(method_to_route(head), head.path);
  }

  // For an address that no route has: whose API it looks like.
  static ErrorShape shape_of(std::string_view path) {
    if (path.starts_with("/api/")) return ErrorShape::kOllama;
    return path.starts_with("/v1/messages") ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
  }

  void allow_origin(HttpReply& reply) const {
    if (options_.cors_origin.empty()) return;
    reply.header("Access-Control-Allow-Origin", options_.cors_origin);
    if (options_.cors_origin != "*") reply.header("Vary", "Origin");
  }

  // Replies to bytes that are no request.
  void refuse_bytes(const HttpError& error, HttpReply& reply) const {
    allow_origin(reply);
    HttpRequest none;
    Exchange exchange{.request = none, .reply = reply};
    if (error.status == kOverloaded.status) return exchange.refuse(kOverloaded);
    exchange.refuse({.status = error.status,
                     .message = error.message,
                     .type = error.status < 500 ? "invalid_request_error" : "server_error"});
  }

  // Looks at a request before its body is read. False: it has been answered.
  bool admit(const HttpRequest& head, HttpReply& reply) {
    allow_origin(reply);
    std::optional<ApiError> error = gate_.check_browser(head);
    if (!error && !options_.cors_origin.empty() && head.method == "OPTIONS") {
      // Clients of the API send headers about themselves, so any is allowed.
      reply.header("Access-Control-Allow-Headers", "Authorization, *");
      reply.header("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
      reply.send(204, {}, {});
      return false;
    }
    const Route* const route = route_of(head);
    if (!error)
      error = gate_.check_route(
          route == nullptr ? RequestGate::Route{}
                           : RequestGate::Route{.method = route->method, .open = route->open},
          head);
    if (!error) return true;
    if (error->status == 404) error->message += near_addresses(head.path);
    if (error->status == 405) reply.header("Allow", allowed_methods(head.path));
    HttpRequest none;
    Exchange{.request = none,
             .reply = reply,
             .errors = route == nullptr ? shape_of(head.path) : route->errors}
        .refuse(*error);
    return false;
  }

  void handle(HttpRequest& request, HttpReply& reply) {
    allow_origin(reply);
    const Route* const route = route_of(request);
    Exchange exchange{.request = request,
                      .reply = reply,
                      .errors = route->errors,
                      .client = gate_.client(request)};
    route->handle(state_, exchange);
  }

  const ServerOptions options_;
  const RequestGate gate_;
  ServerState state_;
  std::unique_ptr<HttpListener> listener_;  // last: its threads use the rest
};

HttpServer::HttpServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::create(const ServerOptions& options) {
  auto implementation = std::make_unique<Implementation>(options);
  HEARTH_TRY(implementation->listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(implementation)));
}

int HttpServer::port() const { return implementation_->port(); }
void HttpServer::serve(const ServedModel& model) { implementation_->serve(model); }
void HttpServer::fail(std::string reason) { implementation_->fail(std::move(reason)); }
void HttpServer::drain(double seconds) { implementation_->drain(seconds); }

}  // namespace hearth
