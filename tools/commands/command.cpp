#include "tools/commands/command.h"

#include <algorithm>

namespace hearth {
namespace {

std::vector<Command*>& registry() {
  static std::vector<Command*> commands;
  return commands;
}

}  // namespace

Command::Command(CommandGroup group, std::string name, std::string about)
    : group_(group), name_(std::move(name)), about_(std::move(about)) {
  registry().push_back(this);
}

std::vector<Command*> Command::all() {
  std::vector<Command*> commands = registry();
  std::sort(commands.begin(), commands.end(),
            [](const Command* a, const Command* b) { return a->name() < b->name(); });
  return commands;
}

}  // namespace hearth
