// A lesson as data: what to explain, what to run, what to ask, and the rule that says which answer
// the measurements give. lesson_parser.h reads it from text; lessons/README.md has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lessons/measure.h"
#include "tools/replay/request_timing.h"

namespace hearth {

// Requests to run, as `hearth replay` takes them: "synthetic:rate=inf,n=16".
struct LessonLoad {
  std::string name;
  std::string trace;
  std::string modelled_trace;  // on the modelled device; empty: the same
};

// What the engine is set to. 0 and empty: as the device and the model have it.
struct LessonSettings {
  uint32_t max_sequences = 0, max_step_tokens = 0, kv_blocks = 0;
  std::string load;     // name of a LessonLoad
  std::string weights;  // weight format: "Q4_0"
  std::string speculate;
  uint32_t draft_max = 0;
  uint32_t beams = 1;
  double temperature = 0;  // 0: greedy
};

// One run of the comparison.
struct LessonRun {
  std::string name;
  std::string policy;  // as parse_policy_spec() takes it
  LessonSettings settings;
  std::string written;  // as the lesson has it, for people
};

// A range of the measured number, and what it means. The lower end belongs to it.
struct LessonChoice {
  char letter = 'a';
  std::optional<double> from, below;  // nothing: without an end
  std::string text;

  bool holds(double measured) const {
    return (!from || measured >= *from) && (!below || measured < *below);
  }
};

// Texts are paragraphs, separated by blank lines; lines that begin with a space are shown as they
// are.
struct Lesson {
  std::string name;  // of its file, without ".txt"
  uint32_t order = 0;
  std::string title, summary, explanation;
  std::string prompt;  // the text that all requests begin with; empty: made-up tokens
  std::string score;   // a text to measure the perplexity of; empty: none
  ServiceGoal goal;
  std::optional<ServiceGoal> modelled_goal;  // on the modelled device, if it differs
  std::vector<LessonLoad> loads;
  std::vector<LessonRun> runs;
  std::string question, unit;  // the unit may be empty
  Measure measure;
  std::vector<LessonChoice> choices;  // from the lowest range to the highest, without gaps
  std::vector<std::string> shown;     // metrics of the table
  std::vector<MeasuredText> answer;   // paragraphs
  std::string look_at, try_next;

  const ServiceGoal& goal_on(bool modelled) const {
    return modelled && modelled_goal ? *modelled_goal : goal;
  }
  const LessonLoad& load(std::string_view load_name) const;  // REQUIRES: there is one
  const LessonChoice* choice(char letter) const;             // null: there is none
};

// "below 1.5 times", "1.5 to 4 times", "4 times or more".
std::string describe_range(const LessonChoice& choice, std::string_view unit);

}  // namespace hearth
