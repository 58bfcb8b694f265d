#include "tools/server/api/response_store.h"

#include <utility>

namespace hearth {

size_t ResponseStore::bytes_of(const Map::value_type& entry) {
  constexpr size_t kOverhead = 256;  // of the table and of the strings
  return kOverhead + 2 * entry.first.size() + entry.second.object.size() +
         entry.second.conversation.size();
}

void ResponseStore::erase(Map::iterator entry) {
  bytes_ -= bytes_of(*entry);
  responses_.erase(entry);
}

void ResponseStore::add(const std::string& id, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = responses_.try_emplace(id, std::move(response));
  if (!added) return;
  bytes_ += bytes_of(*entry);
  order_.push_back(id);
  while (responses_.size() > most_responses_ || bytes_ > most_bytes_) {
    erase(responses_.find(order_.front()));
    order_.pop_front();
  }
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto entry = responses_.find(id);
  if (entry == responses_.end()) return std::nullopt;
  return entry->second;
}

bool ResponseStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = responses_.find(id);
  if (entry == responses_.end()) return false;
  erase(entry);
  std::erase(order_, id);
  return true;
}

}  // namespace hearth
