// A command of the `hearth` program. One file a command: it defines a class and one static object
// of it, and main finds it by itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class Command {
 public:
  Command(std::string name, std::string about);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }

  // Declares options, bound to members.
  virtual void declare(CLI::App& app) = 0;
  // Runs after parsing. What the user asked for goes to stdout, all else to stderr.
  virtual Status run() = 0;

  // Every command of the program, by name.
  static std::vector<Command*> all();

 private:
  std::string name_, about_;
};

}  // namespace hearth
