// The server that a load is for, and what it accepts: found out by asking it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "runtime/result.h"
#include "tools/http/http_transfers.h"

namespace hearth {

enum class LoadEndpoint { kCompletions, kChat };

// What prompts consist of.
enum class PromptForm { kAny, kIds, kText };

struct LoadedServer {
  ServerUrl server;
  std::string key;    // empty: none
  std::string model;  // empty: whichever the server lists first
  LoadEndpoint endpoint = LoadEndpoint::kCompletions;
  PromptForm form = PromptForm::kAny;

  // Filled in by probe_target():
  bool ignore_eos = true;           // answers are as long as the trace says
  bool include_usage = true;        // the server is asked to count tokens
  bool counts_tokens = false;       // and does
  std::optional<uint32_t> context;  // most tokens of prompt and answer together, if it says so
  std::vector<TokenId> ids;         // of ordinary text, for prompts as ids
  // For prompts as text: tokens = fixed_tokens + words * tokens_per_word, about.
  double tokens_per_word = 4.0 / 3, fixed_tokens = 0;

  const char* path() const;
  TransferRequest request(std::string body) const;
};

// Removes what is not part of the server's own address, such as "/v1" at its end.
ServerUrl load_server(ServerUrl url);

// Asks for the model's name, for token ids, and for a few short answers. The error is one line that
// says what is wrong with the server, the key or the options. `go_on` as for fetch().
Result<LoadedServer> probe_target(HttpTransfers& transfers, LoadedServer target,
                                  const std::function<bool()>& go_on = {});

}  // namespace hearth
