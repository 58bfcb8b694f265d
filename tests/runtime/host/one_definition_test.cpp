// A class may be defined only once per program. Two of the same name in one namespace, in headers
// that never meet, compile and link; then the functions of one work on objects of the other.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using FilesByClass = std::map<std::string, std::set<std::string>>;

// Adds the classes that a file defines outside of functions, classes and anonymous namespaces.
void add_classes(const std::filesystem::path& file, FilesByClass& classes) {
  static const std::regex opens("^namespace( [A-Za-z_:0-9]+)? \\{.*");
  static const std::regex closes("^\\}\\s*// namespace.*");
  static const std::regex defines(
      "^(?:struct|class|enum class|union) (?:\\[\\[\\w+\\]\\] )?(\\w+)(?: final)?(?: :[^;]*)? "
      "\\{.*");
  std::vector<std::string> inside;
  std::ifstream stream(file);
  std::smatch match;
  for (std::string line; std::getline(stream, line);) {
    if (std::regex_match(line, match, opens)) {
      inside.push_back(match[1].matched ? match[1].str() : file.string());
    } else if (std::regex_match(line, closes)) {
      if (!inside.empty()) inside.pop_back();
    } else if (std::regex_match(line, match, defines)) {
      std::string name;
      for (const std::string& space : inside) name += space + "::";
      classes[name + match[1].str()].insert(file.string());
    }
  }
}

TEST(OneDefinition, NoTwoClassesShareANameAndANamespace) {
  FilesByClass classes;
  for (const char* const folder : {"runtime", "engine", "tools", "ui"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(HEARTH_SOURCE_DIR "/") + folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp")
        add_classes(entry.path(), classes);
  EXPECT_GT(classes.size(), 500u);
  for (const auto& [name, files] : classes)
    EXPECT_EQ(files.size(), 1u) << name << ": " << *files.begin() << ", " << *files.rbegin();
}

}  // namespace
}  // namespace hearth::testing
