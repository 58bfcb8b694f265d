// hearth serve: the HTTP server.
#include <algorithm>
#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <sys/resource.h>

#include "engine/model_library.h"
#include "engine/session.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
#include "tools/commands/model_options.h"
#include "tools/commands/policy_options.h"
#include "tools/server/http_listener.h"
#include "tools/server/http_server.h"
#include "tools/server/shutdown_signals.h"

namespace hearth {
namespace {

Result<std::string> read_key(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{ErrorKind::kNotFound, fmt::format("cannot open {}", path)};
  std::string key;
  std::getline(file, key);
  // Clients cannot send these: the ends of a header's value are cut off.
  key.erase(key.find_last_not_of(" \t\r") + 1);
  if (key.empty()) return Error{ErrorKind::kIo, fmt::format("{}: no key in its first line", path)};
  return key;
}

// As many connections as the server takes need as many descriptors, and shells give 1,024.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 8192;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &limit);
}

class ServeCommand : public Command {
 public:
  ServeCommand()
      : Command(CommandGroup::kServe, "serve", "Serve a model over HTTP with OpenAI's API") {
    model_.session.max_sequences = 64;
  }

  void declare(Options& options) override {
    options.example("hearth serve -m model.gguf");
    options.example("hearth serve --host 0.0.0.0 --api-key-file key.txt --max-seqs 128");
    options.group("Server");
    options.add("--host ADDRESS", &server_.host, "Address to listen on");
    options.add("--port N", &server_.port, "Port to listen on; 0 picks a free one").range(0, 65535);
    // An empty key, as from an unset variable, would let everyone in.
    options.add("--api-key KEY", &server_.api_key, "API key that clients must send")
        .check([](const std::string& key) { return key.empty() ? "the key is empty" : ""; });
    options.add("--api-key-file FILE", &key_file_, "Read the API key from a file's first line");
    options.add("--cors ORIGIN", &server_.cors_origin, "Origin that browsers may call from, or *");
    name_ = &options.add("--name NAME", &server_.model_name, "What replies call the model");
    options.add("--time-limit S", &server_.request_seconds, "Seconds per request; 0 sets no limit")
        .range(0, 1e9)
        .advanced();
    options.add("--max-body SIZE", &server_.most_body_bytes, "Largest request body")
        .bytes()
        .range(0, 0x1p40)
        .advanced();
    options.group("Scheduling");
    options.add("--max-seqs N", &model_.session.max_sequences, "Most requests in the batch at once")
        .range(1, 4096);
    options.add("--max-queue N", &model_.session.max_queue, "Most requests that may wait")
        .range(1, 1u << 20);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Most tokens per step; 0 picks what suits the device")
        .range(0, 1u << 20)
        .advanced();
    options.add("--policy NAME", &policy_name_, "Scheduling policy").one_of(named_policies());
    switches_.declare(options);
    model_.declare(options);
  }

  Status run() override {
    if (!key_file_.empty()) {
      HEARTH_ASSIGN(server_.api_key, read_key(key_file_));
    }
    std::string label;
    HEARTH_ASSIGN(const Policy policy,
                  switches_.apply(model_.before_switches(*named_policy(policy_name_)), label));
    model_.take_policy(policy);
    if (!name_->given()) {
      HEARTH_ASSIGN(const LibraryModel model, find_model(model_.model));
      server_.model_name = model.name;
    }
    raise_descriptor_limit();
    ShutdownSignals signals;
    HEARTH_ASSIGN(const auto server, HttpServer::create(server_));
    HEARTH_ASSIGN(const auto session, model_.open());
    if (session->tokenizer() == nullptr)
      return Error{
          ErrorKind::kUnsupported,
          fmt::format("{} has no vocabulary, so it cannot be served", session->file().name())};
    const Result<const ChatTemplate*> chat = session->chat_template();
    if (chat.ok() && (*chat)->source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
    signals.defer();
    server->serve({.engine = session->engine(),
                   .tokenizer = *session->tokenizer(),
                   .chat_template = session->chat_template(),
                   .device = session->device().caps().name});
    log_line(fmt::format("listening on http://{}", host_and_port(server_.host, server->port())));
    signals.wait();
    log_line("draining; once more to leave at once");
    server->drain();
    return {};
  }

 private:
  ModelOptionsGroup model_;
  ServerOptions server_;
  PolicySwitchOptions switches_;
  const Option* name_ = nullptr;
  std::string policy_name_ = "continuous";
  std::string key_file_;
};

ServeCommand serve_command;

}  // namespace
}  // namespace hearth
