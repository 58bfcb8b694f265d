#include "engine/ranks/link_exchange.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "params/attention.h"

namespace hearth {
namespace {

// Dividing a sum costs every rank a second message, and pays from this number of bytes on: 3 ranks
// of one process added up 16 MiB in 50 to 61 ms instead of 66 to 80, 32 MiB in 85 to 90 instead of
// 254 to 337, and 8 MiB no faster (two cores). Two ranks send as many bytes either way.
constexpr size_t kLeastDividedBytes = 16 << 20;
constexpr uint32_t kLeastDividingRanks = 3;

// The part of rows that a rank adds up.
template <class T>
std::span<T> part_of(std::span<T> rows, uint32_t rank, uint32_t ranks) {
  const size_t begin = rows.size() * rank / ranks;
  return rows.subspan(begin, rows.size() * (rank + 1) / ranks - begin);
}

}  // namespace

Result<RowsMessage> LinkExchange::receive(uint32_t rank) {
  HEARTH_ASSIGN(Message message, link_.receive(rank, Channel::kSums));
  HEARTH_ASSIGN(RowsMessage rows, read_rows(std::move(message)));
  HEARTH_TRY(rows.status);
  if (rows.step != number_)
    return Error{ErrorKind::kInternal, "the ranks disagree about the order of steps"};
  return rows;
}

Status LinkExchange::share(std::span<const float> own, bool divided) {
  const auto part = [&](uint32_t rank) {
    return divided ? part_of(own, rank, link_.ranks()) : own;
  };
  ++number_;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank())
      HEARTH_TRY(link_.send(rank, Channel::kSums, write_rows({.step = number_}, {}, part(rank))));
  const std::span<const float> own_part = part(link_.rank());
  messages_.resize(link_.ranks());
  sources_.assign(link_.ranks(), own_part);
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    if (rank == link_.rank()) continue;
    HEARTH_ASSIGN(messages_[rank], receive(rank));
    sources_[rank] = messages_[rank].rows;
    if (sources_[rank].size() != own_part.size())
      return Error{ErrorKind::kInternal, fmt::format("rank {} has {} numbers instead of {}", rank,
                                                     sources_[rank].size(), own_part.size())};
  }
  return {};
}

void LinkExchange::add_up(std::span<float> total) const {
  // `total` may be memory that is slow to read, so every number is written once.
  const std::span<const float> first = sources_[0], second = sources_[1];
  if (sources_.size() == 2) {
    for (size_t i = 0; i < total.size(); ++i) total[i] = first[i] + second[i];
    return;
  }
  for (size_t i = 0; i < total.size(); ++i) {
    float sum = first[i];
    for (size_t rank = 1; rank < sources_.size(); ++rank) sum += sources_[rank][i];
    total[i] = sum;
  }
}

Status LinkExchange::sum(std::span<const float> own, std::span<float> total) {
  if (link_.ranks() >= kLeastDividingRanks && own.size_bytes() >= kLeastDividedBytes)
    return divided_sum(own, total);
  HEARTH_TRY(share(own));
  add_up(total);
  return {};
}

Status LinkExchange::divided_sum(std::span<const float> own, std::span<float> total) {
  HEARTH_TRY(share(own, true));
  part_.resize(sources_[0].size());
  add_up(part_);
  ++number_;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank())
      HEARTH_TRY(link_.send(rank, Channel::kSums, write_rows({.step = number_}, {}, part_)));
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    RowsMessage message;
    std::span<const float> sums = part_;
    if (rank != link_.rank()) {
      HEARTH_ASSIGN(message, receive(rank));
      sums = message.rows;
    }
    const std::span<float> place = part_of(total, rank, link_.ranks());
    if (sums.size() != place.size())
      return Error{ErrorKind::kInternal, fmt::format("rank {} has {} sums instead of {}", rank,
                                                     sums.size(), place.size())};
    std::ranges::copy(sums, place.begin());
  }
  return {};
}

Status LinkExchange::join(std::span<const float> own, uint32_t rows, std::span<float> all) {
  ++number_;
  if (link_.rank() != last_rank())
    return link_.send(last_rank(), Channel::kSums, write_rows({.step = number_}, {}, own));
  const size_t width = all.size() / rows;
  size_t column = 0;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    RowsMessage message;
    std::span<const float> source = own;
    if (rank != link_.rank()) {
      HEARTH_ASSIGN(message, receive(rank));
      source = message.rows;
    }
    const size_t columns = source.size() / rows;
    if (column + columns > width) break;
    for (size_t row = 0; row < rows; ++row)
      std::ranges::copy(source.subspan(row * columns, columns),
                        all.begin() + static_cast<std::ptrdiff_t>(row * width + column));
    column += columns;
  }
  if (column == width) return {};
  return Error{ErrorKind::kInternal, "the ranks' columns do not add up"};
}

Status LinkExchange::merge(std::span<const float> own, uint32_t head_size, std::span<float> all) {
  HEARTH_TRY(share(own));
  const size_t stride = head_size + params::kAttentionStats, heads = own.size() / stride;
  shares_.resize(sources_.size());
  for (size_t head = 0; head < heads; ++head) {
    // A rank without keys has a sum of weights of 0, and no max.
    std::optional<float> max;
    for (const std::span<const float> source : sources_) {
      const std::span<const float> stats = source.subspan(head * stride + head_size, 2);
      if (stats[1] > 0) max = std::max(max.value_or(stats[0]), stats[0]);
    }
    float weights = 0;
    for (size_t rank = 0; rank < sources_.size(); ++rank) {
      const std::span<const float> stats = sources_[rank].subspan(head * stride + head_size, 2);
      shares_[rank] = stats[1] > 0 ? std::exp2(stats[0] - *max) : 0;
      weights += shares_[rank] * stats[1];
    }
    for (float& share : shares_) share = weights > 0 ? share / weights : 0;
    // `all` may be memory that is slow to read, so every number is written once.
    const std::span<float> result = all.subspan(head * head_size, head_size);
    const std::span<const float> first = sources_[0].subspan(head * stride, head_size);
    const std::span<const float> second = sources_[1].subspan(head * stride, head_size);
    for (size_t i = 0; i < head_size; ++i) {
      float sum = shares_[0] * first[i] + shares_[1] * second[i];
      for (size_t rank = 2; rank < sources_.size(); ++rank)
        sum += shares_[rank] * sources_[rank][head * stride + i];
      result[i] = sum;
    }
  }
  return {};
}

// Ranks that have no part in a block do not count it, so it has the number of the exchange before.
Status LinkExchange::send_block(uint32_t rank, std::span<const std::byte> block) {
  const auto* const floats = reinterpret_cast<const float*>(block.data());
  return link_.send(rank, Channel::kSums,
                    write_rows({.step = number_}, {}, {floats, block.size() / sizeof(float)}));
}

Result<std::vector<std::byte>> LinkExchange::receive_block(uint32_t rank) {
  HEARTH_ASSIGN(const RowsMessage message, receive(rank));
  const std::span<const std::byte> bytes = std::as_bytes(message.rows);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

void LinkExchange::give_up(const Error& error) {
  if (std::exchange(gave_up_, true)) return;
  // If the link has failed, the others know.
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank())
      static_cast<void>(link_.send(rank, Channel::kSums, write_rows({.step = number_}, error, {})).ok());
}

}  // namespace hearth
