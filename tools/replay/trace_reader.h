// Reads request traces. Strict: what is wrong is named with its line and field, in one line.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "runtime/result.h"
#include "tools/replay/trace.h"

namespace hearth {

// A file in one of the forms below, told apart by how it begins, or "synthetic:..."
// (synthetic_trace.h). The first `limit` requests, 0: all; what comes after is not looked at.
Result<Trace> read_trace(const std::string& what, size_t limit = 0);

// Azure's LLM inference traces: "TIMESTAMP,ContextTokens,GeneratedTokens", then a request a line,
// times as 2023-11-16 18:15:46.6805900. `name` stands in messages.
Result<Trace> read_azure_csv(std::istream& text, const std::string& name, size_t limit = 0);

// Mooncake's traces: a JSON object a line with timestamp (in milliseconds), input_length,
// output_length and hash_ids, one for every 512 tokens of the prompt.
Result<Trace> read_mooncake_jsonl(std::istream& text, const std::string& name, size_t limit = 0);

}  // namespace hearth
