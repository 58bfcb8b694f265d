// A scripted server for tests of loads: it names its model, tokenizes, and answers completions as a
// test says.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/scripted_peer.h"

namespace hearth::testing {

struct LoadPeerOptions {
  bool tokenizes = true;
  // Answers a completion. `number` counts completions from 0, the probe's included.
  using Answer = std::function<void(const nlohmann::json& body, const ScriptedPeer::Wire& wire,
                                    size_t number)>;
  Answer answer;
};

// A stream of `chunks` chunks with text, one every `seconds`, and `tokens` as the server's count;
// 0: it does not count.
inline void stream_answer(const ScriptedPeer::Wire& wire, int chunks, int tokens,
                          double seconds = 0.002, int prompt_tokens = 5) {
  wire.begin_stream();
  wire.event(R"({"choices":[{"text":"","finish_reason":null}],"usage":null})");
  for (int i = 0; i < chunks; ++i) {
    wire.pause(seconds);
    if (!wire.event(R"({"choices":[{"text":"word ","finish_reason":null}]})")) return;
  }
  wire.event(R"({"choices":[{"text":"","finish_reason":"length"}]})");
  if (tokens > 0)
    wire.event(
        nlohmann::json{{"choices", nlohmann::json::array()},
                       {"usage", {{"prompt_tokens", prompt_tokens}, {"completion_tokens", tokens}}}}
            .dump());
  wire.event("[DONE]");
  wire.end_stream();
}

class LoadPeer {
 public:
  explicit LoadPeer(LoadPeerOptions options)
      : options_(std::move(options)),
        peer_([this](const ScriptedPeer::Asked& asked, const ScriptedPeer::Wire& wire) {
          reply(asked, wire);
        }) {}

  ScriptedPeer& operator*() { return peer_; }
  ScriptedPeer* operator->() { return &peer_; }
  size_t completions() const { return completions_; }

 private:
  void reply(const ScriptedPeer::Asked& asked, const ScriptedPeer::Wire& wire) {
    if (asked.path == "/v1/models")
      return wire.reply(200, R"({"data":[{"id":"stub","max_model_len":4096}]})");
    if (asked.path == "/tokenize" && options_.tokenizes)
      return wire.reply(200, R"({"tokens":[11,12,13,14,15,16,17,18,11]})");
    if (!asked.path.ends_with("/completions")) return wire.reply(404, "{}");
    options_.answer(nlohmann::json::parse(asked.body, nullptr, false), wire, completions_++);
  }

  const LoadPeerOptions options_;
  std::atomic<size_t> completions_{0};
  ScriptedPeer peer_;
};

}  // namespace hearth::testing
