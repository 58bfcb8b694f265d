// hearth serve: the HTTP server.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/session.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
#include "tools/commands/model_options.h"
#include "tools/commands/policy_options.h"
#include "tools/descriptor_limit.h"
#include "tools/kv_events/event_publisher.h"
#include "tools/server/announcement.h"
#include "tools/server/api_keys.h"
#include "tools/server/http_server.h"
#include "tools/server/memory_budget.h"
#include "tools/server/model_card.h"
#include "tools/server/shutdown_signals.h"

namespace hearth {
namespace {

// The names under which others on the network know this machine.
std::vector<std::string> machine_names() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return {};
  return {name, std::string(name) + ".local"};
}

std::string check_key(const std::string& key) {
  // An empty key, as from an unset variable, would let everyone in.
  return key.empty() ? "the key is empty" : "";
}

// A rank is lost, and with it the engine. Clients get errors and can still ask /health for three
// seconds; then the server ends, so that a supervisor can start it again.
void end_soon(const std::string& reason) {
  log_line(reason + "; the server ends in 3 s");
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    kill(getpid(), SIGTERM);
  }).detach();
}

#ifndef HEARTH_VERSION
#define HEARTH_VERSION "unknown"
#endif

ServedModel::About facts_about(const Session& session) {
  std::map<std::string_view, uint64_t> formats;  // and how many bytes each has
  for (const ModelTensor& tensor : session.file().tensors())
    formats[format_info(tensor.format).name] += tensor.plain_bytes();
  const auto largest =
      std::ranges::max_element(formats, {}, [](const auto& format) { return format.second; });
  return {.version = HEARTH_VERSION,
          .architecture = std::string(session.model().architecture().name()),
          .format = largest == formats.end() ? "" : std::string(largest->first),
          .parameters = session.model().plan().parameters,
          .bytes = session.model().plan().weight_bytes};
}

// As the file says, if it is a model for embeddings.
Result<ServedModel::Embedding> embedding(const Session& session) {
  constexpr uint64_t kLastPooling = 3;  // in GGUF files
  const Metadata& metadata = session.file().metadata();
  HEARTH_ASSIGN(const std::optional<uint64_t> pooling,
                metadata.unsigned_integer(
                    fmt::format("{}.pooling_type", session.model().architecture().name())));
  HEARTH_ASSIGN(const std::optional<bool> add_eos,
                metadata.boolean("tokenizer.ggml.add_eos_token"));
  return ServedModel::Embedding{
      .width = session.model().config().width,
      .pooling = pooling == kLastPooling ? Pooling::kLast : Pooling::kMean,
      .add_eos = add_eos.value_or(false)};
}

class ServeCommand : public Command {
 public:
  ServeCommand()
      : Command(CommandGroup::kServe, "serve",
                "Serve a model over HTTP, as OpenAI, Anthropic and Ollama do") {
    model_.session.max_sequences = 64;
    model_.session.scored_rows = kScoredRows;
    model_.session.prepare_steps = true;
    model_.session.prepared = [](const PreparationProgress& kernels) {
      log_line(
          fmt::format("{} kernels are compiled, after {:.1f} s", kernels.ready, kernels.seconds));
    };
  }

  void declare(Options& options) override {
    options.example("hearth serve -m model.gguf");
    options.example("hearth serve --host 0.0.0.0 --api-key-file key.txt --max-seqs 128");
    options.example("hearth serve -m model.gguf --tbt-target 25ms");
    options.group("Server");
    options.add("--host ADDRESS", &server_.host, "Address to listen on");
    options.add("--port N", &server_.port, "Port to listen on; 0 picks a free one").range(0, 65535);
    options
        .add("--api-key KEY", &server_.api_keys,
             "API key that clients must send; repeat it for several")
        .check(check_key);
    options.add("--api-key-file FILE", &key_file_,
                "Read API keys from a file, one per line; $HEARTH_API_KEY is also accepted");
    options.add("--control", &server_.control,
                "Let clients with a key control the engine (hearth dash --connect)");
    options.add("--allow-host NAME", &server_.allowed_hosts,
                "Without a key, also answer to this host name; * for any");
    options.add("--cors ORIGIN", &server_.cors_origin, "Origin that browsers may call from, or *");
    options.add("--name NAME", &name_, "Model name shown in API replies");
    std::vector<std::string> formats;
    for (const CallFormat* format : call_formats()) formats.emplace_back(format->name);
    options
        .add("--tool-format NAME", &tool_format_,
             "How the model writes tool calls, if its chat template does not tell")
        .one_of(std::move(formats))
        .advanced();
    options.add("--time-limit S", &server_.request_seconds, "Seconds per request; 0 sets no limit")
        .range(0, 1e9)
        .advanced();
    options
        .add("--drain-time S", &drain_seconds_,
             "Seconds that open requests may take after SIGTERM before they are cancelled")
        .range(0, 1e6)
        .advanced();
    options.add("--max-body SIZE", &server_.most_body_bytes, "Largest request body")
        .bytes()
        .range(0, 0x1p40)
        .advanced();
    options
        .add("--body-memory SIZE", &server_.bodies_bytes,
             "Memory for all request bodies that are being read and parsed")
        .bytes()
        .range(0, 0x1p40)
        .advanced();
    options
        .add("--max-backlog SIZE", &server_.backlog_bytes,
             "Bytes of a stream that a client may leave unread before it is cancelled")
        .bytes()
        .range(0, 0x1p40)
        .advanced();
    options.group("Gateways");
    const Option& events = options.add(
        "--kv-events ENDPOINT", &events_.endpoint,
        "Publish which blocks the prefix cache holds, as in tcp://*:5557 (ZeroMQ, vLLM's format)");
    options
        .add("--kv-events-replay ENDPOINT", &events_.replay_endpoint,
             "Where subscribers ask for events they missed, as in tcp://*:5558")
        .needs(events)
        .advanced();
    options.add("--kv-events-format NAME", &events_format_, "How an event is encoded")
        .one_of({"maps", "arrays"})
        .needs(events)
        .advanced();
    options.add("--kv-events-topic TEXT", &events_topic_, "Topic of the events")
        .default_text("kv@HOST:PORT@MODEL")
        .needs(events)
        .advanced();
    options.group("Scheduling");
    options.add("--max-seqs N", &model_.session.max_sequences, "Maximum requests in a batch")
        .range(1, 4096);
    options.add("--max-queue N", &model_.session.max_queue, "Maximum requests that may wait")
        .range(1, 1u << 20);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Maximum tokens per step; 0 picks what takes at most 50 ms on this device")
        .range(0, 1u << 20)
        .advanced();
    options.add("--policy NAME", &policy_name_, "Scheduling policy").one_of(named_policies());
    switches_.declare(options, /*shows_common=*/true);
    model_.declare(options);
    model_.declare_ranks(options);
    model_.declare_speculation(options);
    model_.declare_contrast(options);
  }

  Status run() override {
    HEARTH_TRY(add_keys());
    if (server_.control && server_.api_keys.empty())
      return Error{ErrorKind::kInvalid,
                   "--control needs an API key, because anyone could pause the server otherwise: "
                   "add --api-key"};
    for (std::string& name : machine_names()) server_.allowed_hosts.push_back(std::move(name));
    std::string label;
    HEARTH_ASSIGN(const Policy policy,
                  switches_.apply(model_.before_switches(*named_policy(policy_name_)), label));
    if (model_.wants_swap() && policy.preemption != Preemption::kSwap)
      return invalid("--swap is for --preemption swap, which was set to recompute");
    model_.take_policy(policy);
    if (model_.is_other_rank()) return model_.run_rank();
    model_.session.rank_lost = end_soon;
    raise_descriptor_limit();
    return_large_blocks_at_once();
    ShutdownSignals signals;
    HEARTH_ASSIGN(const auto server, HttpServer::create(server_));
    std::unique_ptr<EventPublisher> events;  // outlives the session, whose blocks it observes
    if (!events_.endpoint.empty()) {
      events_.encoding = *event_encoding(events_format_);
      HEARTH_ASSIGN(events, EventPublisher::create(events_));
      model_.session.block_observer = &events->log();
    }
    HEARTH_ASSIGN(const auto session, model_.open());
    if (session->tokenizer() == nullptr)
      return Error{
          ErrorKind::kUnsupported,
          fmt::format("{} has no vocabulary, so it cannot be served", session->file().name())};
    const Result<const ChatTemplate*> chat = session->chat_template();
    if (chat.ok() && (*chat)->source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
    HEARTH_ASSIGN(const ServedModel::Embedding embeddings, embedding(*session));
    signals.defer();
    const ServedModel model{.engine = session->engine(),
                            .tokenizer = *session->tokenizer(),
                            .chat_template = chat,
                            .name = name_.empty() ? session->file().name() : name_,
                            .device = session->device().caps().name,
                            .default_sampling = session->default_sampling(),
                            .style = reply_style(*session->tokenizer(), chat),
                            .example = model_.model.empty() ? kStorytellerExample : "",
                            .about = facts_about(*session),
                            .embedding = embeddings,
                            .preparation = [&] { return session->preparation()->progress(); }};
    if (const RankGroup* ranks = session->ranks()) {
      for (const std::string& line : ranks->describe()) log_line(line);
      if (!ranks->divided_rows_text().empty()) log_line(ranks->divided_rows_text());
    }
    if (events) events->start(events_topic(model.name, server->port()));
    server->serve(model);
    announce(model, server->port());
    if (events)
      log_line(fmt::format("KV events at {}{}{}", events->endpoint(),
                           events->replay_endpoint().empty() ? "" : ", replay at ",
                           events->replay_endpoint()));
    if (const PreparationProgress kernels = model.preparation(); !kernels.done)
      log_line(
          fmt::format("compiling kernels in the background, {} so far; requests are slower until "
                      "they are done",
                      kernels.ready));
    signals.wait();
    log_line(
        fmt::format("finishing open requests, for at most {:g} s; press Ctrl-C again to quit now",
                    drain_seconds_));
    server->drain(drain_seconds_);
    if (std::string failure = session->engine().failure(); !failure.empty())
      return Error{ErrorKind::kDeviceLost, std::move(failure)};
    return {};
  }

 private:
  // Null if the template says how calls are written.
  std::shared_ptr<const ReplyStyle> reply_style(const Tokenizer& tokenizer,
                                                const Result<const ChatTemplate*>& chat) const {
    if (tool_format_.empty()) return nullptr;
    return std::make_shared<const ReplyStyle>(
        find_reply_style(tokenizer, chat.ok() ? *chat : nullptr, find_call_format(tool_format_)));
  }

  // From the command line, the file and the environment.
  Status add_keys() {
    if (!key_file_.empty()) {
      HEARTH_ASSIGN(std::vector<std::string> keys, read_api_keys(key_file_));
      for (std::string& key : keys) server_.api_keys.push_back(std::move(key));
    }
    if (const char* key = std::getenv("HEARTH_API_KEY")) {
      if (const std::string wrong = check_key(key); !wrong.empty())
        return Error{ErrorKind::kInvalid, "HEARTH_API_KEY: " + wrong};
      server_.api_keys.emplace_back(key);
    }
    return {};
  }

  std::string events_topic(const std::string& model, int port) const {
    if (!events_topic_.empty()) return events_topic_;
    const std::vector<std::string> names = machine_names();
    return fmt::format("kv@{}:{}@{}", names.empty() ? server_.host : names.front(), port, model);
  }

  void announce(const ServedModel& model, int port) const {
    const SchedulerLimits limits = model.engine.limits();
    const Announcement facts{.model = model.name,
                             .device = model.device,
                             .context = longest_sequence(limits),
                             .max_sequences = limits.max_sequences,
                             .host = server_.host,
                             .port = port,
                             .has_key = !server_.api_keys.empty()};
    for (const std::string& line : announcement_lines(facts)) log_line(line);
  }

  static constexpr const char* kStorytellerExample =
      "Tell me a story about a dragon who lost her key.";

  ModelOptionsGroup model_;
  ServerOptions server_;
  PolicySwitchOptions switches_;
  std::string name_;
  std::string tool_format_;
  std::string policy_name_ = "continuous";
  std::string key_file_;
  EventPublisherOptions events_;
  std::string events_format_ = "maps", events_topic_;
  double drain_seconds_ = 30;
};

ServeCommand serve_command;

}  // namespace
}  // namespace hearth
