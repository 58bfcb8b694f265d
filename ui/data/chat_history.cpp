#include "ui/data/chat_history.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <iterator>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "runtime/host/read_file.h"
#include "runtime/log.h"

namespace hearth {
namespace {

constexpr std::uint64_t kMostChatBytes = 64 << 20;

}  // namespace

std::uint64_t next_revision() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

ChatHistory::ChatHistory(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) loading_ = std::async(std::launch::async, read_folder, folder_);
}

ChatHistory::Loaded ChatHistory::read_folder(const std::filesystem::path& folder) {
  Loaded loaded;
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none))
    if (entry->path().extension() == ".json") paths.push_back(entry->path());
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    const Result<std::string> text =
        read_file(path, {.most_bytes = kMostChatBytes, .regular_only = true});
    Result<Chat> chat = text.ok() ? read_chat(*text) : text.error();
    if (!chat.ok()) {
      log_line(fmt::format("cannot read the conversation {} (left untouched): {}", path.string(),
                           chat.error().message));
      loaded.unreadable.push_back(path.filename().string());
      continue;
    }
    chat->id = path.stem().string();
    for (ChatExchange& exchange : chat->exchanges) exchange.revision = next_revision();
    loaded.chats.push_back(std::make_unique<Chat>(std::move(chat).value()));
  }
  return loaded;
}

bool ChatHistory::load() {
  if (!loading_.valid()) return true;
  if (loading_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  Loaded loaded = loading_.get();
  // New chats may have been saved before the folder was read.
  std::erase_if(loaded.chats, [&](const auto& chat) {
    return find(chat->id) != nullptr || std::ranges::count(removed_early_, chat->id) > 0;
  });
  removed_early_.clear();
  chats_.insert(chats_.begin(), std::make_move_iterator(loaded.chats.begin()),
                std::make_move_iterator(loaded.chats.end()));
  unreadable_ = std::move(loaded.unreadable);
  return true;
}

void ChatHistory::wait() {
  if (loading_.valid()) {
    loading_.wait();
    load();
  }
  files_.wait();
}

Chat* ChatHistory::find(std::string_view id) const {
  const auto found = std::ranges::find_if(chats_, [&](const auto& chat) { return chat->id == id; });
  return found == chats_.end() ? nullptr : found->get();
}

std::filesystem::path ChatHistory::file_of(std::string_view id) const {
  return folder_ / (std::string(id) + ".json");
}

std::string ChatHistory::new_id() const {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &parts);
  // Several dashboards may share the folder, so ids contain random bits.
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{:03}-{:08x}", time, count++ % 1000, std::random_device()());
}

Chat& ChatHistory::add(Chat chat) {
  chat.id = new_id();
  for (ChatExchange& exchange : chat.exchanges) exchange.revision = next_revision();
  chats_.push_back(std::make_unique<Chat>(std::move(chat)));
  save(*chats_.back());
  return *chats_.back();
}

void ChatHistory::save(const Chat& chat) {
  if (folder_.empty()) return;
  if (chat.is_blank()) return files_.remove(file_of(chat.id));
  files_.write(file_of(chat.id), write_chat(chat));
}

void ChatHistory::remove(std::string_view id) {
  const auto found = std::ranges::find_if(chats_, [&](const auto& chat) { return chat->id == id; });
  if (found == chats_.end()) return;
  if (!folder_.empty()) files_.remove(file_of(id));
  if (loading_.valid()) removed_early_.emplace_back(id);
  removed_ = std::move(*found);
  chats_.erase(found);
}

Chat* ChatHistory::restore() {
  if (!removed_) return nullptr;
  removed_->open = true;
  const auto place =
      std::ranges::find_if(chats_, [&](const auto& chat) { return chat->id > removed_->id; });
  Chat* const chat = chats_.insert(place, std::move(removed_))->get();
  save(*chat);
  return chat;
}

}  // namespace hearth
