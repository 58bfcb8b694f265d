#include "runtime/pipeline.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "params/rms_norm.h"
#include "runtime/log.h"
#include "runtime/pipeline_cache.h"
#include "runtime/shader_library.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PipelineTest : public GpuTest {
 protected:
  PipelineInfo norm(uint32_t lanes) {
    return {.kernel = "rms_norm", .constants = params::RmsNormConstants{.kWorkgroupSize = lanes}};
  }
};

TEST_F(PipelineTest, TheLibraryIsSortedAndHoldsSpirv) {
  const auto all = shader_library();
  ASSERT_FALSE(all.empty());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_FALSE(all[i].code.empty()) << all[i].name;
    EXPECT_EQ(all[i].code[0], 0x07230203u) << all[i].name;
    if (i > 0) {
      EXPECT_LT(all[i - 1].name, all[i].name);
    }
    EXPECT_EQ(find_shader(all[i].name)->code.data(), all[i].code.data());
  }
}

TEST_F(PipelineTest, TheSameInfoGivesTheSamePipeline) {
  ASSERT_ASSIGN(const auto store, PipelineStore::create(device()));
  ASSERT_ASSIGN(const Pipeline* first, store->get(norm(64)));
  ASSERT_ASSIGN(const Pipeline* again, store->get(norm(64)));
  ASSERT_ASSIGN(const Pipeline* other, store->get(norm(32)));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  EXPECT_EQ(store->size(), 2u);
}

TEST_F(PipelineTest, TheErrorNamesAnUnknownKernel) {
  const auto result = pipelines().get({.kernel = "no_such_kernel"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("no_such_kernel"));
}

TEST_F(PipelineTest, UnsupportedSubgroupSizesAreRefused) {
  PipelineInfo info = norm(256);
  info.subgroup_size = device().caps().max_subgroup_size * 2;
  const auto result = pipelines().get(info);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
}

TEST_F(PipelineTest, PreparesInParallelAndReportsAFailure) {
  ASSERT_ASSIGN(const auto store, PipelineStore::create(device()));
  std::vector<PipelineInfo> infos;
  const uint32_t subgroup = device().caps().subgroup_size;
  for (uint32_t i = 1; i <= 8; ++i) infos.push_back(norm(subgroup * i));
  ASSERT_OK(store->prepare(infos));
  EXPECT_EQ(store->size(), 8u);
  infos.push_back({.kernel = "no_such_kernel"});
  infos.push_back(norm(subgroup * 9));
  const Status status = store->prepare(infos);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("no_such_kernel"));
  EXPECT_EQ(store->size(), 9u) << "the others are still compiled";
}

class PipelineCacheTest : public PipelineTest {
 protected:
  void SetUp() override {
    PipelineTest::SetUp();
    directory_ = fs::temp_directory_path() / ("hearth-cache-" + std::to_string(getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override {
    fs::permissions(directory_, fs::perms::owner_all, ignored_);
    fs::remove_all(directory_, ignored_);
    PipelineTest::TearDown();
  }

  fs::path file() { return directory_ / pipeline_cache_file_name(device().caps()); }

  // Compiles one kernel with the cache in directory_; returns the log lines.
  std::vector<std::string> use_cache() {
    std::vector<std::string> lines;
    const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
    auto store = PipelineStore::create(device(), {.cache_directory = directory_});
    EXPECT_TRUE(store.ok());
    const auto pipeline = (*store)->get(norm(64));
    EXPECT_TRUE(pipeline.ok());
    return lines;
  }

  std::vector<char> read_bytes() {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_bytes(const std::vector<char>& bytes) {
    std::ofstream(file(), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  static constexpr size_t kOurHeaderBytes = 40;
  fs::path directory_;
  std::error_code ignored_;
};

TEST_F(PipelineCacheTest, IsWrittenAndReadBack) {
  EXPECT_TRUE(use_cache().empty());
  ASSERT_TRUE(fs::exists(file()));
  ASSERT_ASSIGN(const auto cache, PipelineCache::open(device(), directory_));
  EXPECT_GT(cache->loaded_bytes(), 0u);
  EXPECT_TRUE(use_cache().empty());
}

TEST_F(PipelineCacheTest, DamagedFilesAreIgnoredWithOneLine) {
  use_cache();
  const std::vector<char> good = read_bytes();
  ASSERT_GT(good.size(), 40u) << "our header, followed by data";
  struct Case {
    const char* says;
    std::vector<char> bytes;
  };
  std::vector<Case> cases;
  cases.push_back({"truncated", {good.begin(), good.begin() + 10}});
  cases.push_back({"truncated", {good.begin(), good.end() - 1}});
  cases.push_back({"not a pipeline cache", std::vector<char>(500, 'x')});
  cases.push_back({"another driver", good});
  cases.back().bytes[8] ^= 1;
  cases.push_back({"damaged", good});
  cases.back().bytes.back() ^= 1;
  for (const Case& item : cases) {
    write_bytes(item.bytes);
    const std::vector<std::string> lines = use_cache();
    ASSERT_EQ(lines.size(), 1u) << item.says;
    EXPECT_THAT(lines[0], HasSubstr(item.says));
    EXPECT_TRUE(use_cache().empty()) << "the good file written in its place is used: " << item.says;
  }
}

TEST_F(PipelineCacheTest, TwoWritersAddToOneFile) {
  ASSERT_ASSIGN(auto first, PipelineStore::create(device(), {.cache_directory = directory_}));
  ASSERT_ASSIGN(auto second, PipelineStore::create(device(), {.cache_directory = directory_}));
  ASSERT_OK(first->get(norm(64)));
  ASSERT_OK(second->get(norm(32)));
  first->save();
  const size_t alone = read_bytes().size();
  second->save();
  // A driver whose caches hold nothing but a header has nothing to merge.
  ASSERT_ASSIGN(const auto both, PipelineCache::open(device(), directory_));
  EXPECT_GE(read_bytes().size(), alone);
  EXPECT_EQ(both->loaded_bytes() + kOurHeaderBytes, read_bytes().size());
  // What the second one wrote has the first one's pipeline: compiling it again adds nothing.
  first.reset();
  second.reset();
  const std::vector<char> merged = read_bytes();
  EXPECT_TRUE(use_cache().empty());
  EXPECT_EQ(read_bytes().size(), merged.size());
}

TEST_F(PipelineCacheTest, IsSavedAsItGrows) {
  ASSERT_ASSIGN(const auto store, PipelineStore::create(device(), {.cache_directory = directory_}));
  const uint32_t subgroup = device().caps().subgroup_size;
  uint32_t compiled = 0;
  for (; compiled < 100 && !fs::exists(file()); ++compiled) {
    ASSERT_OK(store->get(norm(subgroup * (1 + compiled))));
    store->save_if_grown();
  }
  EXPECT_GT(compiled, 1u) << "not after every one";
  EXPECT_LT(compiled, 100u);
}

TEST_F(PipelineCacheTest, FilesOfOtherBuildsAreRemovedAfterAMonth) {
  fs::create_directories(directory_);
  const std::string name = file().filename().string();
  const std::string device_name = name.substr(0, name.find('-', name.find('-') + 1) + 1);
  const fs::path old = directory_ / (device_name + "0123-old.bin");
  const fs::path recent = directory_ / (device_name + "0123-recent.bin");
  const fs::path foreign = directory_ / "notes.txt";
  for (const fs::path& path : {old, recent, foreign}) std::ofstream(path.string()) << "data";
  for (const fs::path& path : {old, foreign})
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24 * 40));
  EXPECT_TRUE(use_cache().empty());
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(PipelineCacheTest, AnUnwritableDirectoryIsLoggedInOneLine) {
  // A file in place of the directory: not even root can write into it.
  std::ofstream(directory_.string()) << "in the way";
  const std::vector<std::string> lines = use_cache();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("the pipeline cache is not stored"));
}

TEST_F(PipelineCacheTest, AFolderOrAPipeInItsPlaceIsIgnoredWithOneLine) {
  fs::create_directories(file());
  std::vector<std::string> lines = use_cache();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("is a folder"));
  EXPECT_TRUE(fs::is_directory(file()));

  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  lines = use_cache();  // nobody writes into the pipe
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("not a regular file"));
  EXPECT_TRUE(fs::is_fifo(file()));
}

TEST_F(PipelineCacheTest, AnUnreadableFileIsIgnoredWithOneLine) {
  // Not even root can open a link to itself.
  fs::create_directories(directory_);
  fs::create_symlink(file().filename(), file());
  const std::vector<std::string> lines = use_cache();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("ignoring the pipeline cache: cannot open " + file().string()));
}

TEST_F(PipelineCacheTest, TheFileNameChangesWithTheDriver) {
  DeviceCaps other = device().caps();
  other.pipeline_cache_uuid[3] ^= 1;
  EXPECT_NE(pipeline_cache_file_name(other), pipeline_cache_file_name(device().caps()));
}

}  // namespace
}  // namespace hearth::testing
