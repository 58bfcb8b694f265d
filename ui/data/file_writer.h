// Writes and removes files on a thread of its own, so that a frame never waits for a disk. Of
// several versions of a file that wait, only the newest is written. Of the window's thread alone.
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
  // Writes what waits.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const std::filesystem::path& path, std::string contents);
  void remove(const std::filesystem::path& path);
  // Returns when all of it is on the disk.
  void wait();
  // Why the last write failed; empty: it did not.
  std::string failure() const;

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::map<std::filesystem::path, std::optional<std::string>> waiting_;  // nothing: remove it
  bool busy_ = false, closing_ = false;
  std::string failure_;
  std::thread thread_;
};

}  // namespace hearth
