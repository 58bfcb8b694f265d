// Runs the lessons of tests/engine/scenarios/.
#include "tests/engine/scheduling/scenario.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace hearth::test {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<std::uint32_t> to_number(const std::string& word) {
  std::uint32_t value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace

SimulatedEngine& Scenario::engine() {
  if (!engine_) {
    engine_ = std::make_unique<SimulatedEngine>(limits_, policy_);
    if (step_us_ > 0)
      engine_->seconds = [this](const StepLoad& load) {
        return 1e-6 * static_cast<double>(step_us_ + std::uint64_t{token_us_} * load.rows);
      };
  }
  return *engine_;
}

RequestId Scenario::id(const std::string& name) const {
  const auto entry = ids_.find(name);
  if (entry == ids_.end()) throw Problem{"there is no request " + name};
  return entry->second;
}

std::string Scenario::names(std::vector<RequestId> ids) const {
  std::vector<std::string> sorted;
  for (RequestId id : ids) sorted.push_back(names_.at(id));
  std::sort(sorted.begin(), sorted.end());
  std::string result;
  for (const std::string& name : sorted) result += ' ' + name;
  return result.empty() ? " nobody" : result;
}

std::vector<RequestId> Scenario::in_state(SequenceState state) {
  std::vector<RequestId> result;
  for (const auto& [id, name] : names_) {
    const auto view = engine().scheduler.sequence(id);
    if (view && view->state == state) result.push_back(id);
  }
  return result;
}

std::optional<std::string> Scenario::line(const std::string& text) {
  const Words words = split(text.substr(0, text.find('#')));
  if (words.empty()) return std::nullopt;
  const std::string& command = words[0];
  try {
    if ((command == "pool" && !engine_) || command == "swap" || command == "context" ||
        command == "queue" || command == "pipelined" || command == "time")
      set_up(words);
    else if (command == "policy" || command == "switch" || command == "limits" || command == "pool")
      change(words);
    else if (command == "priority" && words.size() == 3 && to_number(words[2]))
      engine().set_priority(id(words[1]), static_cast<std::int32_t>(*to_number(words[2])));
    else if (command == "add")
      add(words);
    else if (command == "cancel" && words.size() == 2)
      engine().cancel(id(words[1]));
    else if (command == "propose" || command == "take-back")
      use_ledger(words);
    else if (command == "step" || command == "steps" || command == "until")
      steps(words);
    else if (command == "expect" && words.size() >= 2)
      expect(words);
    else
      throw Problem{"cannot read this line"};
  } catch (const Problem& problem) {
    return problem.text;
  }
  return std::nullopt;
}

void Scenario::set_up(const Words& words) {
  if (engine_) throw Problem{words[0] + " cannot be changed after the first request"};
  if (words[0] == "pipelined") {
    pipelined_ = true;
    return;
  }
  const auto value = words.size() >= 2 ? to_number(words[1]) : std::nullopt;
  if (!value) throw Problem{words[0] + " takes a number"};
  if (words[0] == "time") {
    const auto per_token = words.size() >= 4 ? to_number(words[3]) : std::nullopt;
    if (!per_token) throw Problem{"time N us N us-per-token"};
    step_us_ = *value;
    token_us_ = *per_token;
  }
  if (words[0] == "pool") limits_.pool_blocks = *value;
  if (words[0] == "swap") limits_.swap_blocks = *value;
  if (words[0] == "context") limits_.context = *value;
  if (words[0] == "queue") limits_.max_queue = *value;
}

// policy NAME | switch NAME VALUE | limits N sequences N tokens | pool N blocks
void Scenario::change(const Words& words) {
  if (words[0] == "pool") {
    const auto blocks = words.size() >= 2 ? to_number(words[1]) : std::nullopt;
    if (!blocks) throw Problem{"pool takes a number"};
    engine_->scheduler.set_limits(limits_.max_sequences, limits_.max_step_tokens, *blocks);
    return;
  }
  if (words[0] == "limits") {
    const auto sequences = words.size() >= 2 ? to_number(words[1]) : std::nullopt;
    const auto tokens = words.size() >= 4 ? to_number(words[3]) : std::nullopt;
    if (!sequences || !tokens) throw Problem{"limits N sequences N tokens"};
    limits_.max_sequences = *sequences;
    limits_.max_step_tokens = *tokens;
    if (engine_) engine_->scheduler.set_limits(*sequences, *tokens);
    return;
  }
  if (words[0] == "policy") {
    const auto named = words.size() == 2 ? named_policy(words[1]) : std::nullopt;
    if (!named) throw Problem{"there is no such policy"};
    policy_ = *named;
  } else {
    if (words.size() != 3) throw Problem{"switch NAME VALUE"};
    if (const auto wrong = set_switch(policy_, words[1], words[2])) throw Problem{*wrong};
  }
  if (engine_) engine_->scheduler.set_policy(policy_);
}

// add NAME prompt N generate N [ends N] [priority N] [same N as NAME] [fork of NAME] [salt N]
void Scenario::add(const Words& words) {
  if (words.size() < 2) throw Problem{"add NAME ..."};
  const std::string& name = words[1];
  const RequestId request = names_.size() + 1;
  NewRequest made;
  std::uint32_t prompt_tokens = 0, same = 0, ends = 0;
  const SimulatedRequest* other = nullptr;
  for (std::size_t i = 2; i < words.size();) {
    const std::string& word = words[i];
    const std::string value = i + 1 < words.size() ? words[i + 1] : "";
    const auto number = to_number(value);
    if (word == "fork" && value == "of" && i + 2 < words.size()) {
      const RequestId parent = id(words[i + 2]);
      other = &engine().requests.at(parent);
      same = prompt_tokens;
      made.fork = ForkPoint{.parent = parent, .position = prompt_tokens};
      i += 3;
      continue;
    }
    if (!number) throw Problem{"'" + word + "' takes a number"};
    i += 2;
    if (word == "prompt")
      prompt_tokens = *number;
    else if (word == "generate")
      made.max_new_tokens = *number;
    else if (word == "ends")
      ends = *number;
    else if (word == "priority")
      made.priority = static_cast<std::int32_t>(*number);
    else if (word == "salt")
      made.cache_salt = *number;
    else if (word == "same" && i + 1 < words.size() && words[i] == "as") {
      same = *number;
      other = &engine().requests.at(id(words[i + 1]));
      i += 2;
    } else
      throw Problem{"cannot read '" + word + "'"};
  }
  std::vector<TokenId> prompt(prompt_tokens);
  for (std::uint32_t i = 0; i < prompt_tokens; ++i)
    prompt[i] = other != nullptr && i < same && i < other->tokens.size()
                    ? other->tokens[i]
                    : static_cast<TokenId>(request * 10'000 + i);
  made.prompt = prompt;
  const AddResult result = engine().add(request, made, ends);
  refusal_ = result.message;
  if (!result.accepted()) return;
  ids_[name] = request;
  names_[request] = name;
}

// propose NAME right N [wrong N] | take-back NAME N
void Scenario::use_ledger(const Words& words) {
  const RequestId request = words.size() >= 2 ? id(words[1]) : 0;
  SimulatedRequest& simulated = engine().requests.at(request);
  if (words[0] == "take-back") {
    const auto count = words.size() == 3 ? to_number(words[2]) : std::nullopt;
    if (!count || *count > simulated.generated()) throw Problem{"take-back NAME N"};
    const auto keep = static_cast<std::uint32_t>(simulated.tokens.size()) - *count;
    engine().scheduler.truncate(request, keep);
    simulated.truncate(keep);
    return;
  }
  std::vector<TokenId> proposed;
  std::uint64_t prefix = simulated.last_prefix();
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const auto count = to_number(words[i + 1]);
    if (!count || (words[i] != "right" && words[i] != "wrong"))
      throw Problem{"propose NAME right N [wrong N]"};
    for (std::uint32_t n = 0; n < *count; ++n) {
      const TokenId right = engine().next_token(prefix);
      proposed.push_back(words[i] == "right" ? right : right + 1);
      prefix = test::extend_prefix(prefix, proposed.back());
    }
  }
  engine().scheduler.propose(request, proposed);
}

void Scenario::one_step() {
  if (const auto problem = engine().step()) throw Problem{*problem};
  if (!pipelined_) engine().report_tokens();
  if (const auto problem = engine().scheduler.check_integrity()) throw Problem{*problem};
}

// step | steps N | until NAME ends
void Scenario::steps(const Words& words) {
  if (words[0] == "until") {
    if (words.size() != 3 || words[2] != "ends") throw Problem{"until NAME ends"};
    const SimulatedRequest& request = engine().requests.at(id(words[1]));
    for (int i = 0; !request.ended; ++i) {
      if (i == 10'000) throw Problem{words[1] + " does not end"};
      one_step();
    }
    return;
  }
  const auto count = words.size() == 2 ? to_number(words[1]) : std::nullopt;
  for (std::uint32_t i = 0; i < count.value_or(1); ++i) one_step();
}

void Scenario::expect(const Words& words) {
  ++expectations_;
  const std::string& what = words[1];
  const Scheduler& scheduler = engine().scheduler;
  const SchedulerCounts counts = scheduler.counts();
  const BatchPlan none;
  const BatchPlan& plan = engine().last_plan != nullptr ? *engine().last_plan : none;
  std::vector<std::pair<RequestId, std::uint32_t>> tokens;
  if (what == "running") {
    expect_names(words, in_state(SequenceState::kRunning));
  } else if (what == "waiting") {
    expect_names(words, in_state(SequenceState::kWaiting));
  } else if (what == "swapped") {
    expect_names(words, in_state(SequenceState::kSwapped));
  } else if (what == "ended") {
    std::vector<RequestId> ended;
    for (const auto& [id, request] : engine().requests)
      if (request.ended) ended.push_back(id);
    expect_names(words, ended);
  } else if (what == "admitted") {
    expect_names(words, plan.admitted);
  } else if (what == "preempted") {
    std::vector<RequestId> preempted = plan.preempted_recompute;
    preempted.insert(preempted.end(), plan.preempted_swap.begin(), plan.preempted_swap.end());
    expect_names(words, preempted);
  } else if (what == "computed") {
    for (const BatchMember& member : plan.members)
      tokens.push_back({member.request, member.tokens});
    expect_tokens(words, tokens);
  } else if (what == "hits") {
    for (const auto& hit : plan.prefix_hits) tokens.push_back({hit.request, hit.tokens});
    expect_tokens(words, tokens);
  } else if (what == "forked") {
    // What a fork has when it is admitted, unless it found that in the prefix cache.
    for (const BatchMember& member : plan.members)
      if (engine().requests.at(member.request).fork && member.first_position > 0 &&
          std::ranges::count(plan.admitted, member.request) > 0 &&
          std::ranges::count(plan.prefix_hits, member.request, &BatchPlan::PrefixHit::request) == 0)
        tokens.push_back({member.request, member.first_position});
    expect_tokens(words, tokens);
  } else if (what == "generated") {
    for (std::size_t i = 2; i < words.size(); i += 2) {
      const SimulatedRequest& request = engine().requests.at(id(words[i]));
      tokens.push_back({id(words[i]),
                        static_cast<std::uint32_t>(request.tokens.size()) - request.prompt_tokens});
    }
    expect_tokens(words, tokens);
  } else if (what == "moves") {
    expect_numbers(words, {{"out", plan.swap_out.size()},
                           {"in", plan.swap_in.size()},
                           {"copies", plan.copies.size()}});
  } else if (what == "blocks") {
    expect_numbers(words, {{"used", counts.blocks_used},
                           {"cached", counts.blocks_cached},
                           {"free", counts.blocks_free},
                           {"reserved", counts.blocks_reserved},
                           {"shared", counts.blocks_shared},
                           {"host", counts.swap_used}});
  } else if (what == "tokens") {
    expect_numbers(words, {{"padding", plan.padding_tokens},
                           {"wasted", counts.wasted_tokens},
                           {"all-padding", scheduler.totals().padding_tokens}});
  } else if (what == "total") {
    expect_numbers(words, {{"steps", scheduler.totals().steps},
                           {"preemptions", scheduler.totals().preemptions_recompute +
                                               scheduler.totals().preemptions_swap}});
  } else if (what == "refused:") {
    std::string wanted;
    for (std::size_t i = 2; i < words.size(); ++i) wanted += (i > 2 ? " " : "") + words[i];
    if (refusal_ != wanted) throw Problem{"the last request was refused with: " + refusal_};
  } else {
    throw Problem{"cannot expect '" + what + "'"};
  }
}

void Scenario::expect_names(const Words& words, const std::vector<RequestId>& actual) {
  std::vector<RequestId> wanted;
  for (std::size_t i = 2; i < words.size(); ++i)
    if (words[i] != "nobody") wanted.push_back(id(words[i]));
  if (names(wanted) != names(actual)) throw Problem{words[1] + " is" + names(actual)};
}

void Scenario::expect_numbers(const Words& words,
                              const std::map<std::string, std::uint64_t>& actual) {
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const auto entry = actual.find(words[i]);
    const auto wanted = to_number(words[i + 1]);
    if (entry == actual.end() || !wanted) throw Problem{"cannot expect '" + words[i] + "'"};
    if (entry->second != *wanted) throw Problem{words[i] + " is " + std::to_string(entry->second)};
  }
  if (words.size() < 4 || words.size() % 2 != 0) throw Problem{"cannot read this line"};
}

void Scenario::expect_tokens(const Words& words,
                             const std::vector<std::pair<RequestId, std::uint32_t>>& actual) {
  std::map<std::string, std::string> wanted, found;
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) wanted[words[i]] = words[i + 1];
  for (const auto& [id, tokens] : actual) found[names_.at(id)] = std::to_string(tokens);
  if (wanted == found) return;
  std::string text;
  for (const auto& [name, tokens] : found) text += ' ' + name + ' ' + tokens;
  throw Problem{words[1] + " is" + (text.empty() ? " nothing" : text)};
}

std::optional<std::string> Scenario::finish() {
  if (!engine_) return "nothing happened";
  for (int i = 0; engine_->live() > 0; ++i) {
    if (i == 100'000) return "some requests never end";
    if (auto problem = line("step")) return problem;
  }
  for (const auto& [id, request] : engine_->requests)
    if (!engine_->output_is_right(request)) return names_.at(id) + " has a wrong output";
  if (engine_->scheduler.counts().blocks_used != 0) return "blocks were not released";
  return std::nullopt;
}

namespace {

std::vector<std::filesystem::path> lessons() {
  std::vector<std::filesystem::path> result;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEARTH_SOURCE_DIR "/tests/engine/scenarios"))
    if (entry.path().extension() == ".txt") result.push_back(entry.path());
  std::sort(result.begin(), result.end());
  return result;
}

class Lesson : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Scenarios, Lesson, testing::ValuesIn(lessons()),
                         [](const auto& lesson) { return lesson.param.stem().string(); });

TEST_P(Lesson, Holds) {
  std::ifstream file(GetParam());
  ASSERT_TRUE(file.good());
  Scenario scenario;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (const auto problem = scenario.line(text))
      FAIL() << GetParam().filename().string() << ':' << number << ": " << text << "\n  but "
             << *problem;
  }
  const auto problem = scenario.finish();
  EXPECT_EQ(problem, std::nullopt);
  EXPECT_GT(scenario.expectations(), 0u) << "a lesson that expects nothing";
}

TEST(Lessons, AreFound) { EXPECT_GE(lessons().size(), 13u); }

// The runner must be able to fail.
TEST(Lessons, WrongExpectationsFail) {
  const auto last = [](std::initializer_list<const char*> lines) {
    Scenario scenario;
    std::optional<std::string> problem;
    for (const char* text : lines) problem = scenario.line(text);
    return problem.value_or("fine");
  };
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect running A"}), "fine");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect running nobody"}), "running is A");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect waiting A"}), "waiting is nobody");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect blocks used 1"}), "used is 2");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect blocks"}), "cannot read this line");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "step", "expect computed A 19"}),
            "computed is A 20");
  EXPECT_EQ(last({"add A prompt 20 generate 3", "expect running B"}), "there is no request B");
  EXPECT_EQ(last({"ad A prompt 20 generate 3"}), "cannot read this line");
  EXPECT_EQ(last({"policy of truth"}), "there is no such policy");
}

}  // namespace
}  // namespace hearth::test
