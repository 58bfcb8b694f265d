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
#include <fmt/ranges.h>

#include "tools/server/alarm.h"
#include "tools/server/event_stream.h"
#include "tools/server/generation_reply.h"
#include "tools/server/http_listener.h"
#include "tools/server/json_body.h"
#include "tools/server/model_card.h"
#include "tools/server/openai_reply.h"
#include "tools/server/openai_request.h"
#include "tools/server/page.h"
#include "tools/server/prometheus.h"
#include "tools/server/prompt_workers.h"
#include "tools/server/request_gate.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kModelPath = "/v1/models/";
// Enough to keep up with any engine: a prompt of a thousand tokens takes a millisecond. Each may
// take as much memory as a chat template may.
constexpr unsigned kPromptThreads = 4;
// For clients to read that their request was cut off, before their connections are.
constexpr auto kFarewellTime = std::chrono::milliseconds(200);

const ApiError kShutDown{.status = 503,
                         .message = "the server has shut down",
                         .type = "server_error",
                         .code = "draining"};
const ApiError kOverloaded{.status = 503,
                           .message = "too many large requests are being read; try again later",
                           .type = "server_error",
                           .code = "overloaded"};

void send_json(HttpReply& reply, int status, const json& body) {
  reply.send(status, kJson, to_text(body));
}

void refuse(HttpReply& reply, const ApiError& error) {
  if (error.status == 429 || error.code == kOverloaded.code) reply.header("Retry-After", "1");
  if (error.status == 401) reply.header("WWW-Authenticate", "Bearer");
  send_json(reply, error.status, error_json(error));
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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
      : options_(std::move(options)), gate_(ApiKeys(options_.api_keys), browser_rules(options_)) {}
  // The listener is destroyed next and waits for its threads, so each is told to end first.
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
             .write = {.time = to_duration(options_.write_seconds),
                       .backlog_bytes = static_cast<size_t>(options_.backlog_bytes)},
             .bodies_bytes = options_.bodies_bytes,
             .most_connections = options_.most_connections,
             .read_time = to_duration(options_.read_seconds)},
            {.admit = [this](const HttpRequest& head,
                             HttpReply& reply) { return admit(head, reply); },
             .handle = [this](HttpRequest& request, HttpReply& reply) { handle(request, reply); },
             .refuse =
                 [this](const HttpError& error, HttpReply& reply) {
                   allow_origin(reply);
                   if (error.status == kOverloaded.status) return refuse(reply, kOverloaded);
                   refuse(reply,
                          {.status = error.status,
                           .message = error.message,
                           .type = error.status < 500 ? "invalid_request_error" : "server_error"});
                 }}));
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
  void drain(double seconds) {
    listener_->stop_keeping_alive();
    const Alarm too_late(to_duration(seconds) - kFarewellTime, [this] {
      cut_off_ = true;
      events_end_ = true;
      // Clients that are told so still have to read it.
      std::this_thread::sleep_for(kFarewellTime);
      listener_->abort();
    });
    if (const ServedModel* model = model_.load()) model->engine.drain();
    events_end_ = true;
    listener_->close();
  }

 private:
  using Method = void (Implementation::*)(HttpRequest&, HttpReply&);
  struct Route {
    std::string_view method, path;
    Method handler;
    bool open = false;  // needs no key: costs nothing and tells nothing

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
        {"GET", kModelPath, &Implementation::model},  // and the model's name
        {"GET", "/metrics", &Implementation::metrics},
        {"GET", "/events", &Implementation::events},
        {"POST", "/tokenize", &Implementation::tokenize},
        {"POST", "/detokenize", &Implementation::detokenize},
        {"POST", "/v1/completions", &Implementation::complete},
        {"POST", "/v1/chat/completions", &Implementation::chat},
    };
    return kRoutes;
  }
  // The route for an address; null if there is none, and one of another method if that is all.
  static const Route* find_route(const HttpRequest& request) {
    const Route* found = nullptr;
    for (const Route& route : routes())
      if (route.answers(request.path) &&
          (found == nullptr || route.method == method_to_route(request)))
        found = &route;
    return found;
  }

  void allow_origin(HttpReply& reply) const {
    if (options_.cors_origin.empty()) return;
    reply.header("Access-Control-Allow-Origin", options_.cors_origin);
    if (options_.cors_origin != "*") reply.header("Vary", "Origin");
  }

  // Looks at a request before its body is read. False: it has been answered.
  bool admit(const HttpRequest& head, HttpReply& reply) {
    allow_origin(reply);
    std::optional<ApiError> error = gate_.check_browser(head);
    if (!error && !options_.cors_origin.empty() && head.method == "OPTIONS") {
      // Clients of the API send headers about themselves, so any is allowed.
      reply.header("Access-Control-Allow-Headers", "Authorization, *");
      reply.header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
      reply.send(204, {}, {});
      return false;
    }
    const Route* const route = find_route(head);
    if (!error)
      error = gate_.check_route(
          route == nullptr ? RequestGate::Route{}
                           : RequestGate::Route{.method = route->method, .open = route->open},
          head);
    if (!error) return true;
    if (error->status == 405) reply.header("Allow", route->method);
    refuse(reply, *error);
    return false;
  }

  void handle(HttpRequest& request, HttpReply& reply) {
    allow_origin(reply);
    (this->*find_route(request)->handler)(request, reply);
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

  // The model, if it takes requests; otherwise null, and the reply says why.
  const ServedModel* ready(HttpReply& reply) const {
    const Health health = state();
    if (health.state == "ok") return model_.load();
    refuse(
        reply,
        {.status = 503, .message = health.message, .type = "server_error", .code = health.state});
    return nullptr;
  }
  // The model, once it is loaded: its numbers can be read while it drains.
  const ServedModel* loaded(HttpReply& reply) const {
    const ServedModel* const model = model_.load();
    return model != nullptr ? model : ready(reply);
  }

  void page(HttpRequest&, HttpReply& reply) {
    // Limits what the page may do, should anything foreign ever get into it.
    reply.header("Content-Security-Policy",
                 "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
                 "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
                 "frame-ancestors 'none'");
    reply.send(200, "text/html; charset=utf-8", page_html());
  }

  void docs(HttpRequest&, HttpReply& reply) { reply.send(200, kText, server_docs()); }

  void health(HttpRequest&, HttpReply& reply) {
    const Health health = state();
    json body = {{"status", health.state}};
    if (!health.message.empty()) body["message"] = health.message;
    send_json(reply, health.status, body);
  }

  json card(const ServedModel& model) const {
    return model_json({.id = model.name,
                       .created = started_,
                       .limits = model.engine.limits(),
                       .sampling = model.default_sampling,
                       .example = model.example});
  }

  void models(HttpRequest&, HttpReply& reply) {
    if (const ServedModel* const model = loaded(reply))
      send_json(reply, 200, {{"object", "list"}, {"data", json::array({card(*model)})}});
  }

  void model(HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = loaded(reply);
    if (model == nullptr) return;
    // A model's name may contain slashes.
    const std::string_view name = std::string_view(request.path).substr(kModelPath.size());
    if (percent_decoded(name) == model->name) return send_json(reply, 200, card(*model));
    refuse(reply, {.status = 404,
                   .message = fmt::format("the model here is {}", model->name),
                   .param = "model",
                   .code = "model_not_found"});
  }

  void metrics(HttpRequest&, HttpReply& reply) {
    if (const ServedModel* const model = loaded(reply))
      reply.send(200, "text/plain; version=0.0.4; charset=utf-8",
                 prometheus_text(model->engine.metrics()));
  }

  void events(HttpRequest&, HttpReply& reply) {
    const ServedModel* const model = loaded(reply);
    if (model == nullptr) return;
    stream_events(model->engine,
                  {.model = model->name,
                   .device = model->device,
                   .limits = model->engine.limits(),
                   .policy = model->engine.policy(),
                   .instance = static_cast<uint64_t>(started_),
                   .now = model->engine.seconds()},
                  reply, events_end_);
  }

  // Charges what a body takes to parse to the budget that it was read on. False: it is used up, and
  // the reply says so.
  static bool charge(HttpRequest& request, HttpReply& reply) {
    if (request.memory.grow_to(request.body.size() + parse_bytes(request.body))) return true;
    request.body = {};
    request.memory.release();
    refuse(reply, kOverloaded);
    return false;
  }

  void tokenize(HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr || !charge(request, reply)) return;
    const auto parsed = parse_tokenize_request(request.body);
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refuse(reply, *error);
    const TokenizeRequest& asked = std::get<TokenizeRequest>(parsed);
    const EncodeOptions options{.add_bos = asked.add_special, .parse_special = asked.parse_special};
    std::string body;
    const auto encode = [&](const std::atomic<bool>&) {
      // A list of JSON values would take five times the memory.
      body = fmt::format("{{\"tokens\":[{}]}}",
                         fmt::join(model->tokenizer.encode(asked.content, options), ","));
    };
    if (!prompt_workers_.run(encode, [&] { return is_gone(reply); }))
      return refuse(reply, cut_off_ ? kShutDown : kClientGone);
    reply.send(200, kJson, body);
  }

  void detokenize(HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr || !charge(request, reply)) return;
    const auto parsed = parse_detokenize_request(request.body, model->tokenizer.size());
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refuse(reply, *error);
    send_json(reply, 200,
              {{"content", model->tokenizer.decode(std::get<std::vector<uint32_t>>(parsed))}});
  }

  void complete(HttpRequest& request, HttpReply& reply) {
    generate(ApiKind::kCompletion, request, reply);
  }
  void chat(HttpRequest& request, HttpReply& reply) { generate(ApiKind::kChat, request, reply); }

  // Nobody waits for this reply any more, or the server has no time left for it.
  bool is_gone(HttpReply& reply) const { return cut_off_ || !reply.flush() || reply.client_gone(); }

  // Reads a request and submits it. When it returns, the body's memory is free again: generating
  // may take minutes.
  std::variant<std::unique_ptr<GenerationReply>, ApiError> begin(ApiKind kind,
                                                                 const ServedModel& model,
                                                                 HttpRequest& request,
                                                                 HttpReply& reply) {
    const auto deadline = options_.request_seconds > 0
                              ? HttpClock::now() + to_duration(options_.request_seconds)
                              : HttpClock::time_point::max();
    const std::string body = std::move(request.body);
    const MemoryLease memory = std::move(request.memory);
    auto parsed = parse_api_request(kind, body,
                                    {.vocabulary = model.tokenizer.size(),
                                     .sampling = model.default_sampling,
                                     .encode = [&](std::string_view text) {
                                       return model.tokenizer.encode(text, {.add_bos = false});
                                     }});
    if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
    const ApiRequest& asked = std::get<ApiRequest>(parsed);
    const ReplyHead head{
        .kind = kind,
        .id = fmt::format("{}-{:016x}", kind == ApiKind::kChat ? "chatcmpl" : "cmpl", next_id()),
        .model = model.name,
        .created = unix_seconds()};
    std::variant<std::unique_ptr<GenerationReply>, ApiError> begun;
    const auto is_late = [&] { return HttpClock::now() >= deadline; };
    const auto make = [&](const std::atomic<bool>& cancelled) {
      begun = GenerationReply::begin(model, head, asked,
                                     {.deadline = deadline, .cancelled = &cancelled});
    };
    if (prompt_workers_.run(make, [&] { return is_late() || is_gone(reply); })) return begun;
    return cut_off_ ? kShutDown : is_late() ? kTimeIsUp : kClientGone;
  }

  void generate(ApiKind kind, HttpRequest& request, HttpReply& reply) {
    const ServedModel* const model = ready(reply);
    if (model == nullptr || !charge(request, reply)) return;
    const auto begun = begin(kind, *model, request, reply);
    if (const ApiError* error = std::get_if<ApiError>(&begun)) return refuse(reply, *error);
    GenerationReply& generation = *std::get<std::unique_ptr<GenerationReply>>(begun);
    const auto gone = [this, &reply] { return is_gone(reply); };
    const auto refuse_for = [this, &reply](const ApiError& error) {
      refuse(reply, cut_off_ ? kShutDown : error);
    };
    if (!generation.is_stream()) {
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
  const RequestGate gate_;
  const int64_t started_ = unix_seconds();
  std::unique_ptr<const ServedModel> owned_;
  std::atomic<const ServedModel*> model_{nullptr};  // owned_, once it is there
  std::atomic<bool> events_end_{false};             // streams of /events end
  std::atomic<bool> cut_off_{false};                // requests in flight are cancelled
  mutable std::mutex mutex_;
  std::string failure_;
  std::mt19937_64 random_{std::random_device{}()};
  PromptWorkers prompt_workers_{kPromptThreads};
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
