#include "tools/server/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tools/server/api_key.h"
#include "tools/server/generation_reply.h"
#include "tools/server/http_listener.h"
#include "tools/server/openai_reply.h"
#include "tools/server/openai_request.h"
#include "tools/server/page.h"
#include "tools/server/prometheus.h"
#include "tools/server/step_event.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kModelPath = "/v1/models/";

void send_json(HttpReply& reply, int status, const json& body) {
  reply.send(status, kJson, to_text(body));
}

void refuse(HttpReply& reply, const ApiError& error) {
  if (error.status == 429) reply.header("Retry-After", "1");
  if (error.status == 401) reply.header("WWW-Authenticate", "Bearer");
  send_json(reply, error.status, error_json(error));
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

const ApiError kShutDown{.status = 503,
                         .message = "the server has shut down",
                         .type = "server_error",
                         .code = "draining"};

}  // namespace

class HttpServer::Implementation {
 public:
  explicit Implementation(ServerOptions options) : options_(std::move(options)) {}
  // The listener goes next and waits for its threads, so each is told to end first.
  ~Implementation() {
    cut_off_ = true;
    events_end_ = true;
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
             .most_connections = options_.most_connections,
             .read_time = std::chrono::duration_cast<HttpClock::duration>(
                 std::chrono::duration<double>(options_.read_seconds))},
            [this](const HttpRequest& request, HttpReply& reply) { handle(request, reply); },
            [this](const HttpError& error, HttpReply& reply) {
              allow_origin(reply);
              refuse(reply,
                     {.status = error.status,
                      .message = error.message,
                      .type = error.status < 500 ? "invalid_request_error" : "server_error"});
            }));
    return {};
  }

  int port() const { return listener_->port(); }
  void serve(const ServedModel& model) {
    owned_ = std::make_unique<const ServedModel>(model);
    model_.store(owned_.get());
  }
  void fail(std::string reason) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(reason);
  }
  void drain() {
    listener_->stop_keeping_alive();
    if (const ServedModel* model = model_.load()) model->engine.drain();
    events_end_ = true;
    listener_->close();
  }

 private:
  using Method = void (Implementation::*)(const HttpRequest&, HttpReply&);
  struct Route {
    std::string_view method, path;
    Method handler;
    bool open = false;  // to everybody: costs nothing and tells nothing

    bool answers(std::string_view address) const {
      return address == path || (path.ends_with('/') && path != "/" && address.starts_with(path));
    }
  };

  static std::span<const Route> routes() {
    static constexpr Route kRoutes[] = {
        {"GET", "/", &Implementation::page, true},
        {"GET", "/docs", &Implementation::docs, true},
        {"GET", "/health", &Implementation::health, true},
        {"GET", "/v1/models", &Implementation::models},
        {"GET", kModelPath, &Implementation::model},  // and its name
        {"GET", "/metrics", &Implementation::metrics},
        {"GET", "/events", &Implementation::events},
        {"POST", "/tokenize", &Implementation::tokenize},
        {"POST", "/detokenize", &Implementation::detokenize},
        {"POST", "/v1/completions", &Implementation::complete},
        {"POST", "/v1/chat/completions", &Implementation::chat},
    };
    return kRoutes;
  }

  void allow_origin(HttpReply& reply) const {
    if (options_.cors_origin.empty()) return;
    reply.header("Access-Control-Allow-Origin", options_.cors_origin);
    if (options_.cors_origin != "*") reply.header("Vary", "Origin");
  }

  void handle(const HttpRequest& request, HttpReply& reply) {
    allow_origin(reply);
    if (!options_.cors_origin.empty() && request.method == "OPTIONS") {
      // Clients of the API send headers about themselves, so any is allowed.
      reply.header("Access-Control-Allow-Headers", "Authorization, *");
      reply.header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
      return reply.send(204, {}, {});
    }
    const std::string_view method =
        request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
    const Route* found = nullptr;
    for (const Route& route : routes())
      if (route.answers(request.path) && (found == nullptr || route.method == method))
        found = &route;
    // Without the key nobody learns what is here.
    if ((found == nullptr || !found->open) &&
        !has_api_key(request.header("authorization"), options_.api_key))
      return refuse(reply, {.status = 401,
                            .message = "a valid API key is needed: Authorization: Bearer KEY",
                            .type = "authentication_error",
                            .code = "invalid_api_key"});
    if (found == nullptr)
      return refuse(reply, {.status = 404, .message = "there is nothing at this address"});
    if (found->method != method) {
      reply.header("Allow", found->method);
      return refuse(
          reply, {.status = 405, .message = fmt::format("this address wants {}", found->method)});
    }
    (this->*found->handler)(request, reply);
  }

  struct Health {
    int status = 200;
    std::string state, message;
  };
  Health state() const {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) return {503, "error", failure_};
    }
    const ServedModel* const model = model_.load();
    if (model == nullptr) return {503, "loading", "the model is being loaded"};
    switch (model->engine.state()) {
      case EngineState::kFailed:
        return {503, "error", model->engine.failure()};
      case EngineState::kDraining:
        return {503, "draining", "the server is shutting down"};
      default:
        return {200, "ok", ""};
    }
  }

  // The model, if it takes requests; otherwise the reply says why not.
  const ServedModel* ready(HttpReply& reply) const {
    const Health health = state();
    if (health.state == "ok") return model_.load();
    refuse(
        reply,
        {.status = 503, .message = health.message, .type = "server_error", .code = health.state});
    return nullptr;
  }
  // The model, once there is one: numbers can be looked at while it drains.
  const ServedModel* loaded(HttpReply& reply) const {
    const ServedModel* const model = model_.load();
    return model != nullptr ? model : ready(reply);
  }

  void page(const HttpRequest&, HttpReply& reply) {
    // What the page may do, should anything foreign ever get into it.
    reply.header("Content-Security-Policy",
                 "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
                 "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'");
    reply.send(200, "text/html; charset=utf-8", page_html());
  }

  void docs(const HttpRequest&, HttpReply& reply) { reply.send(200, kText, server_docs()); }

  void health(const HttpRequest&, HttpReply& reply) {
    const Health health = state();
    json body = {{"status", health.state}};
    if (!health.message.empty()) body["message"] = health.message;
    send_json(reply, health.status, body);
  }

  json model_json(const ServedModel& model) const {
    return {{"id", options_.model_name},
            {"object", "model"},
            {"created", started_},
            {"owned_by", "hearth"},
            {"context", model.engine.limits().context}};
  }

  void models(const HttpRequest&, HttpReply& reply) {
    if (const ServedModel* const model = loaded(reply))
      send_json(reply, 200, {{"object", "list"}, {"data", json::array({model_json(*model)})}});
  }

  void model(const HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = loaded(reply);
    if (model == nullptr) return;
    // A name may have slashes of its own.
    const std::string_view name = std::string_view(request.path).substr(kModelPath.size());
    if (percent_decoded(name) == options_.model_name)
      return send_json(reply, 200, model_json(*model));
    refuse(reply, {.status = 404,
                   .message = fmt::format("the model here is {}", options_.model_name),
                   .param = "model",
                   .code = "model_not_found"});
  }

  void metrics(const HttpRequest&, HttpReply& reply) {
    if (const ServedModel* const model = loaded(reply))
      reply.send(200, "text/plain; version=0.0.4; charset=utf-8",
                 prometheus_text(model->engine.metrics()));
  }

  void events(const HttpRequest&, HttpReply& reply) {
    const ServedModel* const model = loaded(reply);
    if (model == nullptr) return;
    const StepRing& ring = model->engine.records();
    uint64_t next = ring.written();
    StepRecord record;
    // The client is told that it is connected, and to what, before the first step.
    const EngineHello hello{.model = options_.model_name,
                            .device = model->device,
                            .limits = model->engine.limits(),
                            .policy = model->engine.policy(),
                            .instance = static_cast<uint64_t>(started_),
                            .now = model->engine.seconds()};
    if (!reply.begin(kEvents) || !reply.write(fmt::format(": steps\n\nevent: {}\n{}", kHelloEvent,
                                                          to_event(hello_event(hello)))))
      return;
    // Requests end after the last step, too, or come while none runs: that is told after a while.
    constexpr int kQuietLooks = 5;
    int quiet = 0;
    SchedulerCounts told;
    while (!events_end_) {
      const uint64_t written = ring.written();
      if (next == written) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (reply.client_gone()) return;
        SchedulerCounts counts = told;
        model->engine.read_gauges(counts);
        if (++quiet < kQuietLooks || counts == told) continue;
        told = counts;
        if (!reply.write(fmt::format("event: {}\n{}", kCountsEvent, to_event(counts_event(told)))))
          return;
        continue;
      }
      quiet = 0;
      // A reader that is too slow misses records rather than holding anybody up.
      if (!ring.read(next, record)) {
        next = std::max(next + 1, written > 64 ? written - 64 : 0);
        continue;
      }
      ++next;
      told = record.counts;
      if (!reply.write(to_event(step_event(record)))) return;
    }
    reply.end();
  }

  void tokenize(const HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr) return;
    const auto parsed = parse_tokenize_request(request.body);
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refuse(reply, *error);
    const TokenizeRequest& asked = std::get<TokenizeRequest>(parsed);
    const EncodeOptions options{.add_bos = asked.add_special, .parse_special = asked.parse_special};
    send_json(reply, 200, {{"tokens", model->tokenizer.encode(asked.content, options)}});
  }

  void detokenize(const HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr) return;
    const auto parsed = parse_detokenize_request(request.body, model->tokenizer.size());
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refuse(reply, *error);
    send_json(reply, 200,
              {{"content", model->tokenizer.decode(std::get<std::vector<uint32_t>>(parsed))}});
  }

  void complete(const HttpRequest& request, HttpReply& reply) {
    generate(ApiKind::kCompletion, request, reply);
  }
  void chat(const HttpRequest& request, HttpReply& reply) {
    generate(ApiKind::kChat, request, reply);
  }

  void generate(ApiKind kind, const HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr) return;
    auto parsed = parse_api_request(kind, request.body, model->tokenizer.size());
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refuse(reply, *error);
    ApiRequest& asked = std::get<ApiRequest>(parsed);
    asked.generation.time_limit_seconds = options_.request_seconds;
    const ReplyHead head{
        .kind = kind,
        .id = fmt::format("{}-{:016x}", kind == ApiKind::kChat ? "chatcmpl" : "cmpl", next_id()),
        .model = options_.model_name,
        .created = unix_seconds()};
    auto begun = GenerationReply::begin(*model, head, asked);
    if (const ApiError* error = std::get_if<ApiError>(&begun)) return refuse(reply, *error);
    GenerationReply& generation = *std::get<std::unique_ptr<GenerationReply>>(begun);
    const auto gone = [this, &reply] { return cut_off_ || reply.client_gone(); };
    const auto refuse_for = [this, &reply](const ApiError& error) {
      refuse(reply, cut_off_ ? kShutDown : error);
    };
    if (!asked.stream) {
      const auto whole = generation.collect(gone);
      if (const ApiError* error = std::get_if<ApiError>(&whole)) return refuse_for(*error);
      return reply.send(200, kJson, std::get<std::string>(whole));
    }
    // Until the first token an error still has a status of its own.
    if (const auto error = generation.wait_for_start(gone)) return refuse_for(*error);
    if (!reply.begin(kEvents)) return;
    if (generation.write([&reply](std::string_view text) { return reply.write(text); }, gone) ||
        (cut_off_ && reply.write(to_event(error_json(kShutDown)))))
      reply.end();
  }

  uint64_t next_id() {
    const std::lock_guard lock(mutex_);
    return random_();
  }

  const ServerOptions options_;
  const int64_t started_ = unix_seconds();
  std::unique_ptr<const ServedModel> owned_;
  std::atomic<const ServedModel*> model_{nullptr};  // owned_, once it is there
  std::atomic<bool> events_end_{false};             // nobody is told of steps any more
  std::atomic<bool> cut_off_{false};                // nor waits for tokens that are still to come
  mutable std::mutex mutex_;
  std::string failure_;
  std::mt19937_64 random_{std::random_device{}()};
  std::unique_ptr<HttpListener> listener_;  // goes first, with the threads that use the rest
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
void HttpServer::drain() { implementation_->drain(); }

}  // namespace hearth
