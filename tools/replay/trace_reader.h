// Reads request traces. Strict: an error names the line and the field. Line by line, and no line
// may be longer than 1 MiB.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "runtime/result.h"
#include "tools/replay/trace.h"

namespace hearth {

// Reads a file in one of the formats below, recognized by its first character, or makes a synthetic
// trace of "synthetic:..." (synthetic_trace.h). Stops after `limit` requests; 0 reads all.
Result<Trace> read_trace(const std::string& what, size_t limit = 0);

// Azure's LLM inference traces: the line "TIMESTAMP,ContextTokens,GeneratedTokens", then one
// request per line, with times like 2023-11-16 18:15:46.6805900. `name` is for error messages.
Result<Trace> read_azure_csv(std::istream& text, const std::string& name, size_t limit = 0);

// Mooncake's traces: one JSON object per line with timestamp (in milliseconds), input_length,
// output_length and hash_ids, one for every 512 tokens of the prompt.
Result<Trace> read_mooncake_jsonl(std::istream& text, const std::string& name, size_t limit = 0);

}  // namespace hearth
