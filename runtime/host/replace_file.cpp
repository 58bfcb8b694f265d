#include "runtime/host/replace_file.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "runtime/host/descriptor.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::error_code last_system_error() { return {errno, std::generic_category()}; }

std::error_code write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = ::write(file, text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return last_system_error();
    text.remove_prefix(static_cast<size_t>(bytes));
  }
  return {};
}

std::error_code write_new_file(const std::string& path, std::span<const std::string_view> parts,
                               const ReplaceFileOptions& options) {
  // Whatever has this name already, a pipe for example, is not written to.
  ::unlink(path.c_str());
  Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.permissions));
  if (!file.is_open()) return last_system_error();
  for (const std::string_view part : parts)
    if (const std::error_code error = write_all(file.number(), part)) return error;
  if (options.durable && ::fsync(file.number()) != 0) return last_system_error();
  return file.close() ? std::error_code() : last_system_error();
}

}  // namespace

Status replace_file(const fs::path& path, std::span<const std::string_view> parts,
                    const ReplaceFileOptions& options) {
  const auto failed = [&](const std::string& why) {
    return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path.string(), why)};
  };
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    return failed("it exists and is not a regular file");
  if (options.create_folder && path.has_parent_path())
    fs::create_directories(path.parent_path(), error);
  if (error) return failed(error.message());
  // Two threads may replace the same file, with the same temporary name.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::string temporary = fmt::format("{}.{}.new", path.string(), ::getpid());
  error = write_new_file(temporary, parts, options);
  if (!error) fs::rename(temporary, path, error);
  if (!error) return {};
  ::unlink(temporary.c_str());
  return failed(error.message());
}

Status replace_file(const fs::path& path, std::string_view contents,
                    const ReplaceFileOptions& options) {
  return replace_file(path, std::span(&contents, 1), options);
}

}  // namespace hearth
