#include "tools/server/api/server_state.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "tools/server/request_errors.h"

namespace hearth {
namespace {

// Enough to keep up with any engine: a prompt of a thousand tokens takes a millisecond. Each may
// take as much memory as a chat template may.
constexpr unsigned kPromptThreads = 4;
// Threads of their own, so that schemas made to take long delay only other schemas.
constexpr unsigned kGrammarThreads = 2;

}  // namespace

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

ServerState::ServerState(double request_seconds, double comment_seconds)
    : request_seconds_(request_seconds),
      comment_interval_(std::chrono::duration_cast<HttpClock::duration>(
          std::chrono::duration<double>(comment_seconds))),
      prompt_workers_(kPromptThreads),
      grammar_workers_(kGrammarThreads) {}

void ServerState::serve(const ServedModel& model) {
  auto owned = std::make_unique<ServedModel>(model);
  if (owned->style == nullptr)
    owned->style = std::make_shared<const ReplyStyle>(find_reply_style(
        model.tokenizer, model.chat_template.ok() ? *model.chat_template : nullptr));
  owned_ = std::move(owned);
  model_.store(owned_.get());
}

void ServerState::fail(std::string reason) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(reason);
}

ServerState::Health ServerState::health() const {
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

const ServedModel* ServerState::ready(Exchange& exchange) const {
  const Health state = health();
  if (state.state == "ok") return model_.load();
  exchange.refuse(
      {.status = 503, .message = state.message, .type = "server_error", .code = state.state});
  return nullptr;
}

const ServedModel* ServerState::loaded(Exchange& exchange) const {
  const ServedModel* const model = model_.load();
  return model != nullptr ? model : ready(exchange);
}

HttpClock::time_point ServerState::deadline() const {
  if (!(request_seconds_ > 0)) return HttpClock::time_point::max();
  return HttpClock::now() + std::chrono::duration_cast<HttpClock::duration>(
                                std::chrono::duration<double>(request_seconds_));
}

bool ServerState::run_prompt_task(const PromptWorkers::Task& task, HttpClock::time_point deadline,
                                  Exchange& exchange) {
  return run(prompt_workers_, task, deadline, exchange);
}

bool ServerState::run_grammar_task(const PromptWorkers::Task& task, HttpClock::time_point deadline,
                                   Exchange& exchange) {
  return run(grammar_workers_, task, deadline, exchange);
}

bool ServerState::run(PromptWorkers& workers, const PromptWorkers::Task& task,
                      HttpClock::time_point deadline, Exchange& exchange) {
  const auto is_late = [&] { return HttpClock::now() >= deadline; };
  if (workers.run(task, [&] { return is_late() || is_gone(exchange.reply); })) return true;
  exchange.refuse(cut_off_ ? kShutDown : is_late() ? kTimeIsUp : kClientGone);
  return false;
}

std::string ServerState::next_id() {
  const std::lock_guard lock(mutex_);
  return fmt::format("{:08x}{:08x}", random_(), random_());
}

}  // namespace hearth
