#include "ui/data/file_writer.h"

#include <system_error>
#include <utility>

#include "runtime/host/replace_file.h"

namespace hearth {

FileWriter::FileWriter() : thread_([this] { loop(); }) {}

FileWriter::~FileWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void FileWriter::write(const std::filesystem::path& path, std::string contents) {
  {
    const std::lock_guard lock(mutex_);
    queue_[path] = std::move(contents);
  }
  wake_.notify_all();
}

void FileWriter::remove(const std::filesystem::path& path) {
  {
    const std::lock_guard lock(mutex_);
    queue_[path] = std::nullopt;
  }
  wake_.notify_all();
}

void FileWriter::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

std::string FileWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void FileWriter::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto job = queue_.extract(queue_.begin());
    busy_ = true;
    lock.unlock();
    std::string failure;
    if (job.mapped()) {
      const Status status =
          replace_file(job.key(), *job.mapped(), {.create_folder = true, .permissions = 0600});
      if (!status.ok()) failure = status.error().message;
    } else {
      std::error_code ignored;
      std::filesystem::remove(job.key(), ignored);
    }
    lock.lock();
    busy_ = false;
    failure_ = std::move(failure);
    idle_.notify_all();
  }
}

}  // namespace hearth
