// Writes and removes files on its own thread, so that a frame never waits for the disk. If several
// versions of a file are queued, only the newest is written. Call only from the window's thread.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hearth {

class FileWriter {
 public:
  FileWriter();
  // Finishes queued writes.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const std::filesystem::path& path, std::string contents);
  void remove(const std::filesystem::path& path);
  // Returns once everything queued is on disk.
  void wait();
  // Why the last write failed; empty if it succeeded.
  std::string failure() const;

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::map<std::filesystem::path, std::optional<std::string>>
      queue_;  // no contents: remove the file
  bool busy_ = false, closing_ = false;
  std::string failure_;
  std::thread thread_;
};

}  // namespace hearth
