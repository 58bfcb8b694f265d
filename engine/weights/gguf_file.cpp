#include "engine/weights/gguf_file.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "engine/weights/model_name.h"
#include "engine/weights/tensor_list.h"

namespace hearth {
namespace {

// File names have five digits.
constexpr std::uint64_t kMaxParts = 99999;

std::string part_suffix(std::uint64_t index, std::uint64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

struct Split {
  std::uint64_t index = 0, count = 1;
};

Result<Split> split_of(const Metadata& metadata) {
  HEARTH_ASSIGN(const auto count, metadata.unsigned_integer("split.count"));
  HEARTH_ASSIGN(const auto index, metadata.unsigned_integer("split.no"));
  const Split split{.index = index.value_or(0),
                    .count = std::max<std::uint64_t>(1, count.value_or(1))};
  if (split.count > kMaxParts || split.index >= split.count)
    return Error{ErrorKind::kInvalid,
                 fmt::format("key 'split.no': part {} of {}", split.index, split.count)};
  return split;
}

// The part of the name that all files of a set share, from the path of one.
Result<std::string> split_stem(const std::filesystem::path& path, const Split& split) {
  const std::string suffix = part_suffix(split.index, split.count);
  const std::string name = path.string();
  if (!name.ends_with(suffix))
    return Error{ErrorKind::kInvalid,
                 fmt::format("this is part {} of a model in {} files, so its name must end in {}",
                             split.index + 1, split.count, suffix)};
  return name.substr(0, name.size() - suffix.size());
}

Result<GgufImage> read_header(const MappedFile& mapping, const std::filesystem::path& path) {
  auto image = read_gguf(mapping.bytes());
  // First: what went missing meanwhile explains every other error.
  HEARTH_TRY(mapping.check());
  if (!image.ok()) return in_file(path, image.error());
  return image;
}

}  // namespace

void GgufFile::take_keys(GgufImage& image) {
  keys_ = std::move(image.keys);
  metadata_ = std::move(image.metadata);
}

Status GgufFile::add_part(const std::filesystem::path& path, std::uint64_t index,
                          std::uint64_t count) {
  HEARTH_ASSIGN(auto mapping, MappedFile::open(path));
  HEARTH_ASSIGN(GgufImage image, read_header(mapping, path));
  const auto split = split_of(image.metadata);
  if (!split.ok()) return in_file(path, split.error());
  if (split->index != index || split->count != count)
    return in_file(path, {ErrorKind::kInvalid,
                          fmt::format("its header says part {} of {}, but its name does not",
                                      split->index + 1, split->count)});
  if (index == 0) take_keys(image);
  tensors_.insert(tensors_.end(), std::make_move_iterator(image.tensors.begin()),
                  std::make_move_iterator(image.tensors.end()));
  paths_.push_back(path);
  mappings_.push_back(std::move(mapping));
  return {};
}

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::filesystem::path& path) {
  HEARTH_ASSIGN(auto mapping, MappedFile::open(path));
  HEARTH_ASSIGN(GgufImage image, read_header(mapping, path));
  const auto split = split_of(image.metadata);
  if (!split.ok()) return in_file(path, split.error());

  std::unique_ptr<GgufFile> file(new GgufFile(model_name(path)));
  if (split->count == 1) {
    file->take_keys(image);
    file->tensors_ = std::move(image.tensors);
    file->paths_.push_back(path);
    file->mappings_.push_back(std::move(mapping));
    return file;
  }
  const auto stem = split_stem(path, *split);
  if (!stem.ok()) return in_file(path, stem.error());
  for (std::uint64_t part = 0; part < split->count; ++part)
    HEARTH_TRY(file->add_part(*stem + part_suffix(part, split->count), part, split->count));
  const auto wanted = file->metadata_.unsigned_integer("split.tensors.count");
  if (!wanted.ok()) return in_file(path, wanted.error());
  if (*wanted && **wanted != file->tensors_.size())
    return in_file(
        path, {ErrorKind::kInvalid, fmt::format("{} tensors in {} files instead of {}",
                                                file->tensors_.size(), split->count, **wanted)});
  if (auto status = sort_tensors(file->tensors_); !status.ok())
    return in_file(path, std::move(status).error());
  return file;
}

Result<std::unique_ptr<GgufFile>> GgufFile::from_memory(std::span<const std::byte> gguf,
                                                        std::string name) {
  auto image = read_gguf(gguf);
  if (!image.ok()) return in_file(name, std::move(image).error());
  const auto split = split_of(image->metadata);
  if (!split.ok()) return in_file(name, split.error());
  if (split->count != 1)
    return in_file(
        name, {ErrorKind::kInvalid,
               fmt::format("this is one of {} files, and the others are missing", split->count)});
  std::unique_ptr<GgufFile> file(new GgufFile(std::move(name)));
  file->take_keys(*image);
  file->tensors_ = std::move(image->tensors);
  return file;
}

bool GgufFile::consists_of(const std::filesystem::path& path) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const auto& own) {
    std::error_code ignored;
    return std::filesystem::equivalent(own, path, ignored);
  });
}

}  // namespace hearth
