// The main function of all tests. A program holds the tests of several files; `--file NAME` runs
// those of NAME.cpp.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace {

// A filter for gtest that lets through the tests written in `file`.cpp; empty if there are none.
std::string filter_for(const std::string& file) {
  std::string filter;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::filesystem::path(test.file()).stem() != file) continue;
      if (!filter.empty()) filter += ':';
      filter += std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--file") == 0) {
    const std::string filter = filter_for(argv[2]);
    if (filter.empty()) {
      std::fprintf(stderr, "%s has no tests of %s.cpp\n", argv[0], argv[2]);
      return 1;
    }
    GTEST_FLAG_SET(filter, filter);
  } else if (argc > 1) {
    std::fprintf(stderr, "usage: %s [--file NAME] [--gtest_...]\n", argv[0]);
    return 1;
  }
  return RUN_ALL_TESTS();
}
