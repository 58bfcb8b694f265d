// The responses that clients may ask for again or continue, in memory, the newest of them: the
// oldest are dropped when there are too many. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace hearth {

struct StoredResponse {
  std::string object;        // as the client got it
  std::string conversation;  // the messages up to and including its own, as a JSON list
};

class ResponseStore {
 public:
  explicit ResponseStore(size_t most_responses = 4096, size_t most_bytes = 64 << 20)
      : most_responses_(most_responses), most_bytes_(most_bytes) {}

  // A response larger than the whole store is not kept.
  void add(const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& id) const;
  // False: there is none.
  bool remove(const std::string& id);

 private:
  using Map = std::unordered_map<std::string, StoredResponse>;
  static size_t bytes_of(const Map::value_type& entry);
  void erase(Map::iterator entry);

  const size_t most_responses_, most_bytes_;
  mutable std::mutex mutex_;
  Map responses_;
  std::deque<std::string> order_;  // the oldest first
  size_t bytes_ = 0;
};

}  // namespace hearth
