#include "tools/load/load_prompt.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <vector>

namespace hearth {
namespace {

constexpr std::string_view kLoadWords[] = {
    "time",     "year",   "people", "way",     "day",    "man",      "thing",  "woman",
    "life",     "child",  "world",  "school",  "state",  "family",   "group",  "country",
    "hand",     "part",   "place",  "case",    "week",   "company",  "system", "program",
    "question", "work",   "number", "night",   "point",  "home",     "water",  "room",
    "mother",   "area",   "money",  "story",   "fact",   "month",    "lot",    "right",
    "study",    "book",   "eye",    "job",     "word",   "business", "issue",  "side",
    "kind",     "head",   "house",  "service", "friend", "father",   "power",  "hour",
    "game",     "line",   "end",    "member",  "law",    "car",      "city",   "name",
    "team",     "minute", "idea",   "body",    "back",   "parent",   "face",   "others",
    "level",    "office", "door",   "health",  "person", "art",      "war",    "history",
    "party",    "result", "change", "morning", "reason", "moment",   "air",    "teacher",
    "force",    "road"};

std::vector<TokenId> word_indices() {
  std::vector<TokenId> indices(std::size(kLoadWords));
  std::iota(indices.begin(), indices.end(), TokenId{0});
  return indices;
}

}  // namespace

std::string words_text(size_t words) {
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    if (i > 0) text += ' ';
    text += kLoadWords[i % std::size(kLoadWords)];
  }
  return text;
}

LoadPrompts::LoadPrompts(const LoadedServer& target, uint64_t seed)
    : target_(target),
      maker_(target.form == PromptForm::kIds ? target.ids : word_indices(), seed) {}

std::string LoadPrompts::text(const TraceRequest& request, size_t index) const {
  const double tokens = std::max(request.prompt_tokens - target_.fixed_tokens, 1.0);
  TraceRequest in_words = request;
  in_words.prompt_tokens =
      static_cast<uint32_t>(std::max(std::round(tokens / target_.tokens_per_word), 1.0));
  in_words.tokens_per_prefix_id /= target_.tokens_per_word;
  std::string text;
  for (const TokenId word : maker_.make(in_words, index)) {
    if (!text.empty()) text += ' ';
    text += kLoadWords[word];
  }
  return text;
}

std::string LoadPrompts::body(const TraceRequest& request, size_t index) const {
  nlohmann::json body = {{"model", target_.model},
                         {"max_tokens", request.generated_tokens},
                         {"temperature", 0},
                         {"stream", true}};
  if (target_.form == PromptForm::kIds)
    body["prompt"] = maker_.make(request, index);
  else if (target_.endpoint == LoadEndpoint::kChat)
    body["messages"] = {{{"role", "user"}, {"content", text(request, index)}}};
  else
    body["prompt"] = text(request, index);
  if (target_.ignore_eos) body["ignore_eos"] = true;
  if (target_.include_usage) body["stream_options"] = {{"include_usage", true}};
  return body.dump();
}

}  // namespace hearth
