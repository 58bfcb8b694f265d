// A command of the `hearth` program. Each command is one file with a class and one static object of
// it; main finds the object by itself.
#pragma once

#include <string>
#include <vector>

#include "runtime/result.h"
#include "tools/options/options.h"

namespace hearth {

// The headings of `hearth --help`, in this order.
enum class CommandGroup { kRun, kServe, kMeasure, kFiles };

class Command {
 public:
  // `about` is one line for help, without a full stop.
  Command(CommandGroup group, std::string name, std::string about);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  CommandGroup group() const { return group_; }
  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }

  // Declares options and the members they set.
  virtual void declare(Options& options) = 0;
  // Called once the members are set. Prints what the user asked for to stdout, all else to stderr.
  virtual Status run() = 0;

  // All commands, sorted by name.
  static std::vector<Command*> all();

 private:
  CommandGroup group_;
  std::string name_, about_;
};

}  // namespace hearth
