#include "engine/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using test::bytes_of;
using test::safetensors;
using ::testing::HasSubstr;

std::optional<std::string> same_name(std::string_view name) { return std::string(name); }

std::string problem_of(std::string_view header, std::size_t data_bytes,
                       const TensorNaming& naming = same_name) {
  const auto tensors = read_safetensors(bytes_of(safetensors(header, data_bytes)), naming);
  return tensors.ok() ? "" : tensors.error().message;
}

// Builds {"a": ...} with the given fields, for errors in one tensor.
std::string entry_problem(std::string_view entry) {
  return problem_of(R"({"a":)" + std::string(entry) + "}", 16);
}

TEST(Safetensors, ReadsTensors) {
  const std::string file = safetensors(
      R"({"__metadata__":{"format":"pt"}, "b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a":{"shape":[4],"dtype":"BF16","data_offsets":[24,32]},)"
      R"("s":{"shape":[],"dtype":"F16","data_offsets":[32,34]},)"
      R"("c":{"shape":[2,3,1],"dtype":"F16","data_offsets":[34,46]}}   )",
      46);
  const auto tensors = read_safetensors(bytes_of(file), same_name);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 4u);
  const ModelTensor& b = (*tensors)[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.format, WeightFormat::kF32);
  EXPECT_EQ(b.rows, 2u);
  EXPECT_EQ(b.cols, 3u);
  EXPECT_EQ(b.bytes.size(), 24u);
  EXPECT_EQ(std::to_integer<int>(b.bytes[1]), 1);
  const ModelTensor& a = (*tensors)[1];
  EXPECT_EQ(a.format, WeightFormat::kBf16);
  EXPECT_EQ(a.rows, 1u);
  EXPECT_EQ(a.cols, 4u);
  EXPECT_EQ(std::to_integer<int>(a.bytes[0]), 24);
  EXPECT_EQ((*tensors)[2].format, WeightFormat::kF16);
  EXPECT_EQ((*tensors)[2].cols, 1u);
  EXPECT_EQ((*tensors)[3].matrices, 2u);
  EXPECT_EQ((*tensors)[3].rows, 6u);
}

TEST(Safetensors, LeavesOutTensorsOnRequest) {
  const auto not_a = [](std::string_view name) {
    return name == "a" ? std::nullopt : std::optional("x." + std::string(name));
  };
  const std::string file = safetensors(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                                       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                                       12);
  const auto tensors = read_safetensors(bytes_of(file), not_a);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ(tensors->front().name, "x.b");
}

TEST(Safetensors, NamesTheErrorInATensor) {
  EXPECT_EQ(entry_problem(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})"), "");
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,12]})"),
              HasSubstr("tensor 'a' has 12 bytes instead of 16"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[2,2],"data_offsets":[4,20]})"),
              HasSubstr("bytes 4 to 20, outside"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[2,2],"data_offsets":[16,0]})"),
              HasSubstr("outside"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16]})"),
              HasSubstr("'F8_E4M3'"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})"),
              HasSubstr("no elements"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[4294967296,4294967296,4294967296],)"
                            R"("data_offsets":[0,16]})"),
              HasSubstr("over 2^32"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"),
              HasSubstr("too many dimensions"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","data_offsets":[0,16]})"), HasSubstr("lacks"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[4],"data_offsets":[0]})"),
              HasSubstr("lacks"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16,20]})"),
              HasSubstr("more than two offsets"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})"),
              HasSubstr("negative"));
  EXPECT_THAT(entry_problem(R"({"dtype":"F32","shape":[4.5],"data_offsets":[0,16]})"),
              HasSubstr("invalid number"));
  EXPECT_THAT(entry_problem(R"({"dtype":4,"shape":[4],"data_offsets":[0,16]})"),
              HasSubstr("number where none belongs"));
  EXPECT_THAT(entry_problem(R"({"what":"F32"})"), HasSubstr("unknown field 'what'"));
  EXPECT_THAT(entry_problem("[1]"), HasSubstr("array where none belongs"));
  EXPECT_THAT(entry_problem(R"({"dtype":{"x":1}})"), HasSubstr("object where none belongs"));
  EXPECT_THAT(entry_problem("null"), HasSubstr("null where none belongs"));
}

TEST(Safetensors, AFileThatIsCutOffSaysHowMuchIsMissing) {
  const std::string header = R"({"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]},)"
                             R"("skipped":{"dtype":"I64","shape":[2],"data_offsets":[24,40]},)"
                             R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto not_skipped = [](std::string_view name) {
    return name == "skipped" ? std::nullopt : same_name(name);
  };
  EXPECT_EQ(problem_of(header, 40, not_skipped), "");
  EXPECT_THAT(problem_of(header, 20, not_skipped),
              HasSubstr("the file is cut off: 20 bytes are missing"));
  EXPECT_THAT(problem_of(header, 0, not_skipped), HasSubstr("40 bytes are missing"));
}

TEST(Safetensors, NamesOverlappingTensors) {
  EXPECT_THAT(problem_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                         R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})",
                         16),
              HasSubstr("tensors 'a' and 'b' overlap"));
}

TEST(Safetensors, NamesTheErrorInTheHeader) {
  EXPECT_THAT(problem_of(R"({"a":{"dtype":"F32",)", 0), HasSubstr("byte 2"));
  EXPECT_THAT(problem_of(R"({"a":{"dtype":"F32",)", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of("[]", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(problem_of("{}x", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of(R"({"a":{"shape":[[[[[[1]]]]]]}})", 0), HasSubstr("too many levels"));
  EXPECT_THAT(problem_of(R"({")" + std::string(70000, 'x') + R"(":1})", 0),
              HasSubstr("a value that is too long"));
}

TEST(Safetensors, SaysWhereTheFileEnds) {
  EXPECT_THAT(read_safetensors(bytes_of("abc"), same_name).error().message,
              HasSubstr("byte 0: the header's length"));
  std::string file = safetensors("{}", 0);
  file[0] = 100;
  EXPECT_THAT(read_safetensors(bytes_of(file), same_name).error().message,
              HasSubstr("byte 8: the header takes 100 bytes, but only 2 are left"));
  EXPECT_THAT(read_safetensors(bytes_of(file), same_name).error().message,
              HasSubstr("at least 98 bytes are missing"));
  file[7] = '\x80';
  EXPECT_THAT(read_safetensors(bytes_of(file), same_name).error().message,
              HasSubstr("not a safetensors file"));
}

}  // namespace
}  // namespace hearth
