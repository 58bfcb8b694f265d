// Models by path and by name, and the name that people see, without reading any model.
#include "engine/model_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/weights/model_name.h"
#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelName, IsNeverAPath) {
  for (const auto& [path, name] :
       {std::pair<const char*, const char*>{"/a/b/Qwen2.5-1.5B.gguf", "Qwen2.5-1.5B"},
        {"model.Q4_K_M.gguf", "model.Q4_K_M"},
        {"big-00002-of-00003.gguf", "big"},
        {"-00001-of-00003.gguf", "-00001-of-00003"},
        {"/models/SmolLM2-1.7B", "SmolLM2-1.7B"},
        {"/models/SmolLM2-1.7B/", "SmolLM2-1.7B"},
        {"/models/gemma/../qwen/.", "qwen"},
        {"/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de2", "Qwen3-0.6B"},
        {"/x/snapshots/c1899de2", "c1899de2"}})
    EXPECT_EQ(model_name(path), name) << path;
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(model_name("."), here.filename());
}

class ModelLibraryTest : public ::testing::Test {
 protected:
  ModelLibraryTest() {
    for (const char* file :
         {"Llama-3.2-1B-Q4_K_M.gguf", "Llama-3.2-1B-Q8_0.gguf", "tiny.gguf",
          "big-00001-of-00002.gguf", "big-00002-of-00002.gguf", "notes.txt", ".hidden.gguf"})
      folder_.write(file, "12345");
    std::filesystem::create_directories(folder_ / "qwen/Qwen3-0.6B");
    folder_.write("qwen/Qwen3-0.6B/config.json", "{}");
    folder_.write("qwen/Qwen3-0.6B/a.safetensors", "123");
    folder_.write("qwen/Qwen3-0.6B/b.safetensors", "4567");
    std::filesystem::create_directories(folder_ / "one/two/three/four");
    folder_.write("one/two/deep.gguf", "1");
    folder_.write("one/two/three/deeper.gguf", "1");
    folder_.write("one/two/three/four/too-deep.gguf", "1");
  }

  std::string found(const std::string& wanted) const {
    const Result<LibraryModel> model = find_model(wanted, folder_.path());
    return model.ok() ? model->name : "error: " + model.error().message;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ModelLibraryTest, ListsFilesAndFoldersByName) {
  std::vector<std::string> names;
  for (const LibraryModel& model : list_models(folder_.path())) names.push_back(model.name);
  EXPECT_THAT(names, ElementsAre("big", "deep", "Llama-3.2-1B-Q4_K_M", "Llama-3.2-1B-Q8_0",
                                 "Qwen3-0.6B", "tiny"));
  EXPECT_TRUE(list_models(folder_ / "nowhere").empty());
  EXPECT_TRUE(list_models({}).empty());
}

TEST_F(ModelLibraryTest, ASplitSetIsOneModelAndAFolderHasTheSizeOfItsWeights) {
  const Result<LibraryModel> big = find_model("big", folder_.path());
  ASSERT_TRUE(big.ok()) << big.error().message;
  EXPECT_EQ(big->path.filename(), "big-00001-of-00002.gguf");
  EXPECT_EQ(big->bytes, 10u);
  EXPECT_EQ(big->format, "GGUF");
  const Result<LibraryModel> qwen = find_model("Qwen3-0.6B", folder_.path());
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_EQ(qwen->bytes, 7u);
  EXPECT_EQ(qwen->format, "safetensors");
}

TEST_F(ModelLibraryTest, ANameMayBeShortAndInAnyCase) {
  EXPECT_EQ(found("tiny"), "tiny");
  EXPECT_EQ(found("TINY.gguf"), "tiny");
  EXPECT_EQ(found("qwen3"), "Qwen3-0.6B");
  EXPECT_EQ(found("llama-3.2-1b-q8"), "Llama-3.2-1B-Q8_0");
  EXPECT_EQ(found("qwen/Qwen3-0.6B"), "Qwen3-0.6B");  // from the models folder on
}

TEST_F(ModelLibraryTest, AWholeNameWinsOverALongerOne) {
  folder_.write("tiny-chat.gguf", "1");
  EXPECT_EQ(found("tiny"), "tiny");
  EXPECT_EQ(found("tiny-"), "tiny-chat");
}

TEST_F(ModelLibraryTest, AnAmbiguousNameListsWhatItCouldBe) {
  EXPECT_THAT(found("llama"), HasSubstr("any of Llama-3.2-1B-Q4_K_M, Llama-3.2-1B-Q8_0"));
  // The same name twice: folders tell them apart.
  folder_.write("one/deep.gguf", "1");
  EXPECT_THAT(found("deep"), HasSubstr("any of one/deep.gguf, one/two/deep.gguf"));
  EXPECT_EQ(found("one/deep.gguf"), "deep");
  folder_.write("deepest.gguf", "1");
  EXPECT_THAT(found("dee"), HasSubstr("any of one/deep.gguf, one/two/deep.gguf, deepest"));
}

TEST_F(ModelLibraryTest, AFileInTheModelsFolderItselfWinsOverOnesBelow) {
  std::filesystem::create_directories(folder_ / "a");
  folder_.write("m.gguf", "1");
  folder_.write("a/m.gguf", "12");
  for (const auto& [wanted, bytes] :
       {std::pair<const char*, uint64_t>{"m", 1}, {"m.gguf", 1}, {"a/m.gguf", 2}}) {
    const Result<LibraryModel> model = find_model(wanted, folder_.path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->bytes, bytes) << wanted;
  }
  EXPECT_THAT(found("M"), HasSubstr("any of a/m.gguf, m.gguf"));
}

TEST_F(ModelLibraryTest, AWrongNameSuggestsNearOnes) {
  EXPECT_THAT(found("tniy"), HasSubstr("no model 'tniy'; did you mean tiny?"));
  EXPECT_THAT(found("qewn3"), HasSubstr("did you mean Qwen3-0.6B?"));
  EXPECT_THAT(found("3.2-1b-q4"), HasSubstr("did you mean Llama-3.2-1B-Q4_K_M?"));
  EXPECT_THAT(found("mixtral"), HasSubstr(folder_.path().string()));
  EXPECT_THAT(find_model("mixtral", {}).error().message, HasSubstr("give the path"));
}

TEST_F(ModelLibraryTest, APathThatExistsComesFirst) {
  const std::string file = (folder_ / "tiny.gguf").string();
  EXPECT_EQ(find_model(file, {})->path, file);
  EXPECT_EQ(found("/no/such/tiny.gguf"), "error: /no/such/tiny.gguf: no such file or folder");
}

TEST_F(ModelLibraryTest, AFolderIsAModelOrHasOne) {
  EXPECT_EQ(found((folder_ / "one/two").string()), "deep");
  EXPECT_THAT(found(folder_.path().string()),
              HasSubstr("this folder has several models; choose one of "));
  EXPECT_THAT(found((folder_ / "one/two/three/four").string()), HasSubstr("too-deep"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_THAT(found((folder_ / "empty").string()), HasSubstr("no model in this folder"));
}

TEST_F(ModelLibraryTest, AConfigNextToGgufFilesDoesNotMakeASafetensorsModel) {
  std::filesystem::create_directories(folder_ / "both");
  folder_.write("both/config.json", "{}");
  folder_.write("both/small.gguf", "123");
  const auto format = [&](const std::string& wanted) {
    const Result<LibraryModel> model = find_model(wanted, folder_.path());
    return model.ok() ? model->format : model.error().message;
  };
  EXPECT_EQ(format("small"), "GGUF");
  EXPECT_EQ(format((folder_ / "both").string()), "GGUF");
  folder_.write("both/model.safetensors.index.json", "{}");
  EXPECT_EQ(format((folder_ / "both").string()), "safetensors");
}

TEST_F(ModelLibraryTest, WithoutANameItIsTheBuiltInModel) {
  const Result<LibraryModel> model = find_model("", folder_.path());
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(model->path.empty());
  EXPECT_EQ(model->format, "built in");
  EXPECT_GT(model->bytes, 0u);
  // It has a name like any other.
  EXPECT_EQ(found(model->name), model->name);
}

}  // namespace
}  // namespace hearth
