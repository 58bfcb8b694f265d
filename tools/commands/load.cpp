// hearth load: drives any OpenAI-compatible server with a trace and reports what clients saw.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/chat/interrupt.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/descriptor_limit.h"
#include "tools/load/load_report.h"
#include "tools/load/load_run.h"
#include "tools/load/load_target.h"
#include "tools/progress.h"
#include "tools/replay/parse_number.h"
#include "tools/replay/replay_plot.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

class LoadCommand : public Command {
 public:
  LoadCommand()
      : Command(CommandGroup::kMeasure, "load",
                "Send a request trace to a server and measure what its clients see") {}

  void declare(Options& options) override {
    constexpr double kPositive = std::numeric_limits<double>::min();
    options.example(
        "hearth load http://127.0.0.1:8080 'synthetic:n=64,prompt=16..400,gen=16..64,seed=1' "
        "--clients 16");
    options.example("hearth load http://127.0.0.1:8080 trace.csv --limit 500");
    options.example(
        "hearth load https://host/v1 synthetic:n=200 --rate 2,4,8 --key KEY --plot a.svg");
    options
        .add("URL", &url_text_, "The server: Hearth, llama.cpp, vLLM or another with OpenAI's API")
        .required()
        .check([](const std::string& text) {
          const Result<ServerUrl> url = parse_server_url(text);
          return url.ok() ? std::string() : url.error().message;
        });
    options
        .add("TRACE", &trace_name_,
             "As for hearth replay: an Azure CSV or Mooncake JSONL file, or synthetic:...")
        .check([](const std::string& text) {
          if (!text.starts_with(kSyntheticScheme)) return std::string();
          const Result<Trace> trace = make_synthetic_trace(text, 1);
          return trace.ok() ? std::string() : trace.error().message;
        });
    options.group("Load");
    const Option& clients =
        options
            .add("--clients LIST", &clients_,
                 "Closed loop: N clients, each of which waits for its answer before it sends the "
                 "next request; several numbers, as in 8,64, run one after the other")
            .separator(',')
            .range(1, 100'000);
    options
        .add("--rate LIST", &rates_,
             "Open loop: requests arrive at random, R per second on average; several rates run one "
             "after the other. Without --clients and --rate, requests arrive at the trace's times; "
             "if it has none, 16 clients send them")
        .separator(',')
        .check([](const std::string& text) {
          const double rate = parse_number<double>(text).value_or(0);
          return rate > 0 && rate <= 1e6 ? "" : "a rate is a number above 0, at most 1000000";
        })
        .excludes(clients);
    options.add("--limit N", &limit_, "Only the first N requests; 0 takes all");
    options.add("--speed X", &speed_, "Requests arrive X times as fast as the trace says")
        .range(kPositive, 1e9)
        .excludes(clients)
        .advanced();
    options.add("--length-scale X", &length_scale_, "Multiply all lengths by X")
        .range(kPositive, 1e9)
        .advanced();
    seed_option_ =
        &options.add("--seed N", &seed_,
                     "Seed of arrivals and prompts, which makes runs the same. Without it, "
                     "prompts are new each time, so that no prefix cache has them");
    options.add(
        "--retries N", &settings_.retries,
        "How often to send a request again that gets 429 or 503, after the time in Retry-After");
    options.add("--timeout S", &settings_.timeout_seconds, "Seconds per request")
        .range(kPositive, 1e6)
        .advanced();
    options.group("Server");
    options.add("--model NAME", &target_.model, "Model to ask for; by default the server's first");
    options.add("--key KEY", &target_.key, "API key; $HEARTH_API_KEY is also read")
        .alias("--api-key");
    options.add("--endpoint NAME", &endpoint_, "Which of OpenAI's APIs to use")
        .one_of({"completions", "chat"});
    options
        .add("--prompt-as FORM", &form_,
             "How prompts are sent: as token ids, or as text, whose length is only about right. "
             "Without it, ids if the server takes them")
        .one_of({"ids", "text"});
    options.check([this] {
      return endpoint_ == "chat" && form_ == "ids"
                 ? "--endpoint chat cannot be combined with --prompt-as ids"
                 : std::string();
    });
    options.group("Output");
    options
        .add("--slo GOAL", &goal_text_,
             "Service-level objective in seconds: requests that meet it count as goodput")
        .check([](const std::string& text) {
          const Result<ServiceGoal> goal = parse_service_goal(text);
          return goal.ok() ? std::string() : goal.error().message;
        });
    options.add("--plot FILE.svg", &plot_path_, "Draw the numbers as an SVG file")
        .check(check_plot_name);
    const Option& json = add_json_option(options, &json_);
    options.add("--requests", &list_requests_, "With --json, add the times of every request")
        .needs(json)
        .advanced();
  }

  Status run() override {
    HEARTH_ASSIGN(goal_, parse_service_goal(goal_text_));
    HEARTH_ASSIGN(trace_, read_trace(trace_name_, limit_));
    if (length_scale_ != 1) scale_lengths(trace_, length_scale_);
    speed_up(trace_, speed_);
    if (!plot_path_.empty()) HEARTH_TRY(check_writable(plot_path_));
    raise_descriptor_limit();
    HEARTH_ASSIGN(transfers_, HttpTransfers::create());
    const InterruptGuard interrupts;
    HEARTH_TRY(open_target());
    if (target_.context) clipped_ = clip_lengths(trace_, *target_.context);
    plan_runs();
    for (size_t i = 0; i < plans_.size() && !interrupted_; ++i) measure(i);
    if (!plot_path_.empty())
      HEARTH_TRY(
          write_plot(plot_path_, plot_load(reports_, goal_, target_.server.at(""), trace_name_)));
    if (json_)
      print_json();
    else
      fmt::print("{}{}", heading(), format_load(reports_, goal_));
    return outcome();
  }

 private:
  struct Plan {
    std::string label;
    uint32_t clients = 0;
    double rate = 0;  // 0: the trace's own times
  };

  // False after Ctrl-C, which ends the load with the numbers so far.
  bool go_on() {
    if (take_interrupt()) interrupted_ = true;
    return !interrupted_;
  }

  Status open_target() {
    HEARTH_ASSIGN(ServerUrl url, parse_server_url(url_text_));
    target_.server = load_server(std::move(url));
    target_.endpoint = endpoint_ == "chat" ? LoadEndpoint::kChat : LoadEndpoint::kCompletions;
    target_.form = form_ == "ids"    ? PromptForm::kIds
                   : form_ == "text" ? PromptForm::kText
                                     : PromptForm::kAny;
    if (const char* key = std::getenv("HEARTH_API_KEY"); target_.key.empty() && key != nullptr)
      target_.key = key;
    if (std::ranges::any_of(target_.key,
                            [](char c) { return static_cast<unsigned char>(c) < ' '; }))
      return invalid("the API key contains a line break or another control character");
    HEARTH_ASSIGN(target_, probe_target(*transfers_, target_, [this] { return go_on(); }));
    return {};
  }

  void plan_runs() {
    for (const uint32_t clients : clients_)
      plans_.push_back({fmt::format("{} client{}", clients, clients == 1 ? "" : "s"), clients, 0});
    for (const std::string& rate : rates_)
      plans_.push_back({rate + (rate == "1" ? " request/s" : " requests/s"), 0,
                        parse_number<double>(rate).value_or(1)});
    if (!plans_.empty()) return;
    const bool has_times = trace_.requests.back().arrival_seconds > 0;
    if (has_times)
      plans_.push_back({"the trace's times", 0, 0});
    else
      plans_.push_back({fmt::format("{} clients", kDefaultClients), kDefaultClients, 0});
  }

  void measure(size_t index) {
    const Plan& plan = plans_[index];
    Trace trace = trace_;
    if (plan.rate > 0) arrive_at_rate(trace, plan.rate, seed_);
    LoadRunSettings settings = settings_;
    settings.clients = plan.clients;
    // Other prompts each time: the server may have kept the last ones.
    settings.prompt_seed =
        (seed_option_->given() ? uint64_t{seed_} << 16 : uint64_t{std::random_device()()} << 16) +
        index;
    Progress progress(plan.label, ProgressOutput::standard_error(json_));
    size_t ended = 0;
    const auto show = [&] {
      progress.update(ended, trace.requests.size(),
                      fmt::format("{} of {} requests", ended, trace.requests.size()));
    };
    const LoadRun run = run_load(*transfers_, target_, trace, settings,
                                 {.go_on = [this] { return go_on(); },
                                  .ended =
                                      [&](const LoadedRequest&) {
                                        ++ended;
                                        show();
                                      }});
    reports_.push_back(make_load_report(run, goal_, plan.label));
    if (list_requests_) request_lists_.push_back(requests_to_json(run));
  }

  std::string prompt_form() const {
    return target_.form == PromptForm::kIds ? "token ids" : "text of about the right length";
  }

  std::string heading() const {
    std::string text = fmt::format("{}{}: {}, prompts as {}\n", target_.server.at(""),
                                   target_.path(), target_.model, prompt_form());
    text += fmt::format("{}: {} requests, {} prompt tokens, {} generated tokens", trace_name_,
                        trace_.requests.size(), trace_.prompt_tokens(), trace_.generated_tokens());
    if (clipped_ > 0)
      text += fmt::format("; {} of them cut to {} tokens", clipped_, *target_.context);
    text += '\n';
    if (!target_.ignore_eos)
      text += "The server refuses ignore_eos, so answers may be shorter than the trace says.\n";
    return text;
  }

  void print_json() const {
    nlohmann::json result = {
        {"server", target_.server.at("")},
        {"endpoint", target_.path()},
        {"model", target_.model},
        {"prompt_as", target_.form == PromptForm::kIds ? "ids" : "text"},
        {"ignore_eos", target_.ignore_eos},
        {"trace", trace_name_},
        {"clipped", clipped_},
        {"slo", {{"ttft", goal_.time_to_first_token}, {"tbt", goal_.time_between_tokens}}},
        {"runs", nlohmann::json::array()}};
    for (size_t i = 0; i < reports_.size(); ++i) {
      nlohmann::json entry = to_json(reports_[i]);
      if (plans_[i].clients > 0) entry["clients"] = plans_[i].clients;
      if (plans_[i].rate > 0) entry["rate"] = plans_[i].rate;
      if (list_requests_) entry["request_times"] = request_lists_[i];
      result["runs"].push_back(std::move(entry));
    }
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  // A load is a failure if a request failed, or if all were turned away. Being turned away (429,
  // 503) is what an overloaded server is expected to do.
  Status outcome() const {
    uint64_t requests = 0, completed = 0, failed = 0;
    for (const LoadReport& report : reports_) {
      if (report.interrupted) return {};
      requests += report.requests;
      completed += report.completed;
      failed += report.failed;
    }
    if (completed > 0 && failed == 0) return {};
    std::string reason;
    for (const LoadReport& report : reports_)
      for (const auto& [kind, error] : report.errors) {
        const bool turned_away = kind == "HTTP status 429" || kind == "HTTP status 503";
        if (reason.empty() && (failed == 0 || !turned_away)) reason = kind;
      }
    const std::string what = completed == 0
                                 ? "no request was answered"
                                 : fmt::format("{} of {} requests failed", failed, requests);
    return Error{ErrorKind::kIo, fmt::format("{}: {} ({})", target_.server.at(""), what, reason)};
  }

  static constexpr uint32_t kDefaultClients = 16;

  std::string url_text_, trace_name_ = "synthetic:n=64,prompt=16..400,gen=16..64,seed=1";
  std::string goal_text_ = "ttft=1,tbt=0.1", plot_path_, endpoint_ = "completions", form_;
  std::vector<uint32_t> clients_;
  std::vector<std::string> rates_;
  size_t limit_ = 0;
  double speed_ = 1, length_scale_ = 1;
  uint32_t seed_ = 1;
  const Option* seed_option_ = nullptr;
  bool json_ = false, list_requests_ = false, interrupted_ = false;

  ServiceGoal goal_;
  Trace trace_;
  size_t clipped_ = 0;
  std::unique_ptr<HttpTransfers> transfers_;
  LoadedServer target_;
  LoadRunSettings settings_;
  std::vector<Plan> plans_;
  std::vector<LoadReport> reports_;
  std::vector<nlohmann::json> request_lists_;
};

LoadCommand load_command;

}  // namespace
}  // namespace hearth
