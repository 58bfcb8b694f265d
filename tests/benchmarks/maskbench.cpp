// How fast and how right masks are: every schema and instance of MaskBench's sample in ../shared,
// with Llama 3's vocabulary of 128k tokens, on one thread; then JSON-Schema-Test-Suite, where every
// case of every group is an instance. Built with the tests, run by hand:
//   maskbench [--json FILE] [--only PART_OF_A_NAME]
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "engine/grammar_vocabulary.h"
#include "tests/engine/grammar/shared_schemas.h"
#include "tests/engine/text/vocabularies.h"
#include "tools/grammar/grammar_check.h"

namespace hearth::testing {
namespace {

double percentile(std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
}

nlohmann::ordered_json summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {{"count", values.size()},
          {"mean", values.empty() ? 0 : sum / static_cast<double>(values.size())},
          {"p50", percentile(values, 0.5)},
          {"p90", percentile(values, 0.9)},
          {"p99", percentile(values, 0.99)},
          {"max", values.empty() ? 0 : values.back()}};
}

int run(const std::string& json_file, const std::string& only) {
  const auto tokenizer = published("llama-bpe");
  const std::vector<SchemaCase> cases = maskbench_cases();
  if (tokenizer == nullptr || cases.empty()) {
    fmt::print(stderr,
               "maskbench: needs vocab/llama3 and schemas/maskbench.jsonl.xz in ../shared\n");
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto trie = make_token_trie(*tokenizer);
  const std::chrono::duration<double> made = std::chrono::steady_clock::now() - start;
  fmt::print("{} tokens, trie made in {:.2f} s\n", trie->vocabulary_size(), made.count());

  std::vector<double> compile_us, mask_us;
  std::size_t schemas = 0, right = 0, refused = 0, wrong = 0, missed = 0;
  struct Slow {
    double us = 0;
    std::string name;
  };
  std::vector<Slow> slow_masks, slow_compiles;
  std::map<std::string, std::size_t> reasons;
  for (const SchemaCase& one : cases) {
    if (one.name.find(only) == std::string::npos) continue;
    const SchemaVerdict verdict = check_schema(one, {}, trie, *tokenizer);
    ++schemas;
    right += verdict.right;
    wrong += verdict.wrong;
    missed += verdict.missed;
    compile_us.push_back(verdict.compile_us);
    slow_compiles.push_back({verdict.compile_us, one.name});
    mask_us.insert(mask_us.end(), verdict.mask_us.begin(), verdict.mask_us.end());
    if (!verdict.mask_us.empty())
      slow_masks.push_back(
          {*std::max_element(verdict.mask_us.begin(), verdict.mask_us.end()), one.name});
    if (verdict.refused) {
      ++refused;
      ++reasons[verdict.refused->substr(0, verdict.refused->find(" at "))];
    }
  }
  const auto by_time = [](const Slow& a, const Slow& b) { return a.us > b.us; };
  std::sort(slow_masks.begin(), slow_masks.end(), by_time);
  std::sort(slow_compiles.begin(), slow_compiles.end(), by_time);
  fmt::print("slowest masks:");
  for (std::size_t i = 0; i < std::min<std::size_t>(8, slow_masks.size()); ++i)
    fmt::print(" {} {:.0f} us;", slow_masks[i].name, slow_masks[i].us);
  fmt::print("\nslowest compiles:");
  for (std::size_t i = 0; i < std::min<std::size_t>(8, slow_compiles.size()); ++i)
    fmt::print(" {} {:.0f} us;", slow_compiles[i].name, slow_compiles[i].us);
  fmt::print("\n");

  std::size_t suite = 0, suite_right = 0, suite_wrong = 0, suite_refused = 0;
  for (const SchemaCase& one : test_suite_cases("draft2020-12")) {
    if (one.name.find(only) == std::string::npos) continue;
    const SchemaVerdict verdict = check_schema(one, {}, trie, *tokenizer);
    suite += one.instances.size();
    suite_wrong += verdict.wrong;
    if (verdict.refused)
      suite_refused += one.instances.size();
    else
      suite_right += one.instances.size() - verdict.wrong - verdict.missed;
    if (verdict.wrong > 0) fmt::print("wrongly accepted: {}\n", one.name);
  }

  const nlohmann::ordered_json mask = summary(mask_us), compile = summary(compile_us);
  const nlohmann::ordered_json all = {{"vocabulary", trie->vocabulary_size()},
                                      {"schemas", schemas},
                                      {"right", right},
                                      {"refused", refused},
                                      {"refused_by_keyword", reasons},
                                      {"invalid_accepted", wrong},
                                      {"valid_missed", missed},
                                      {"mask_us", mask},
                                      {"compile_us", compile},
                                      {"test_suite_2020_12",
                                       {{"cases", suite},
                                        {"right", suite_right},
                                        {"refused", suite_refused},
                                        {"invalid_accepted", suite_wrong}}}};
  fmt::print("{}\n", all.dump(1));
  if (!json_file.empty()) std::ofstream(json_file) << all.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace hearth::testing

int main(int count, char** arguments) {
  std::string json_file, only;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    if (name == "--json") json_file = arguments[i + 1];
    if (name == "--only") only = arguments[i + 1];
  }
  return hearth::testing::run(json_file, only);
}
