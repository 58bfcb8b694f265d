// The options of beam search, and how a command shows what it finds.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/generation.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/options/options.h"

namespace hearth {

class BeamOptionsGroup {
 public:
  // --beams, --length-penalty, --early-stopping, --best. REQUIRES: the options of sampling,
  // speculation, contrastive search and guidance were declared before, because beam search excludes
  // most of them.
  void declare(Options& options);
  // What is wrong with them together; empty if nothing is.
  std::string problem() const;

  bool searches() const { return beams_ > 1; }
  // As many sequences run at once.
  uint32_t beams() const { return beams_; }
  void apply(GenerationRequest& request) const;
  // Runs the search and prints the texts, after `prompt` if they are not printed as JSON.
  Status run(Session& session, const GenerationRequest& request, const std::string& prompt,
             bool json) const;

 private:
  // What `hearth run --json` prints of any text, for the best one, and all texts. `best` is how the
  // best one ended.
  void print_json(const GenerationRequest& request, const GenerationEnd& best,
                  nlohmann::json texts) const;

  uint32_t beams_ = 1, best_ = 1;
  float length_penalty_ = 1;
  std::string early_stopping_ = "off";
};

}  // namespace hearth
