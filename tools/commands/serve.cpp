// hearth serve: the HTTP server.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <sys/resource.h>

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

// Of a file, or of a folder, which may have dots in its name and a slash behind it.
std::string name_of(const std::filesystem::path& model) {
  const std::filesystem::path last = model.has_filename() ? model : model.parent_path();
  return (last.extension() == ".gguf" ? last.stem() : last.filename()).string();
}

class ServeCommand : public Command {
 public:
  ServeCommand() : Command("serve", "Serve a model over HTTP, as OpenAI's API") {
    model_.session.max_sequences = 64;
  }

  void declare(CLI::App& app) override {
    model_.declare(app);
    app.add_option("--host", server_.host, "Address to listen on")->capture_default_str();
    app.add_option("--port", server_.port, "Port to listen on; 0: any")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    // An empty one, as from a variable that is not set, would let everyone in.
    app.add_option("--api-key", server_.api_key, "Key that clients must send")
        ->check([](const std::string& key) { return key.empty() ? "the key is empty" : ""; },
                "KEY");
    app.add_option("--api-key-file", key_file_, "File with the key in its first line");
    app.add_option("--cors", server_.cors_origin, "Origin that browsers may call from, or *");
    name_ = app.add_option("--name", server_.model_name, "What the model is called in replies");
    app.add_option("--max-seqs", model_.session.max_sequences, "Requests in the batch at most")
        ->check(CLI::Range(1u, 4096u))
        ->capture_default_str();
    app.add_option("--max-step-tokens", model_.session.max_step_tokens,
                   "Tokens a step at most; 0: what suits the device")
        ->capture_default_str()
        ->check(CLI::Range(0u, 1u << 20));
    app.add_option("--max-queue", model_.session.max_queue, "Requests that may wait")
        ->check(CLI::Range(1u, 1u << 20))
        ->capture_default_str();
    app.add_option("--policy", policy_name_, "Which scheduling scheme")
        ->capture_default_str()
        ->check(CLI::IsMember(named_policies()));
    switches_.declare(app);
    app.add_option("--time-limit", server_.request_seconds, "Seconds a request may take; 0: any")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    app.add_option("--max-body", server_.most_body_bytes, "Largest request body, as 8MB")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40));
  }

  Status run() override {
    if (!key_file_.empty()) {
      HEARTH_ASSIGN(server_.api_key, read_key(key_file_));
    }
    std::string label;
    HEARTH_ASSIGN(const Policy policy,
                  switches_.apply(model_.before_switches(*named_policy(policy_name_)), label));
    model_.take_policy(policy);
    if (!model_.model.empty() && name_->count() == 0) server_.model_name = name_of(model_.model);
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
  CLI::Option* name_ = nullptr;
  std::string policy_name_ = "continuous";
  std::string key_file_;
};

ServeCommand serve_command;

}  // namespace
}  // namespace hearth
