#include "engine/ranks/link_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/ranks/row_division_cost.h"
#include "engine/weights/half.h"
#include "params/attention.h"

namespace hearth {
namespace {

template <class T>
std::span<T> part(std::span<T> all, const ShardRange& range) {
  return all.subspan(range.first, range.size);
}

// Copies numbers, each as a float or a half on either side, as the sizes say.
void copy_numbers(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.size() == to.size()) {
    std::memcpy(to.data(), from.data(), to.size());
  } else if (from.size() < to.size()) {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from.data());
    auto* const floats = reinterpret_cast<float*>(to.data());
    for (size_t i = 0; i < to.size() / sizeof(float); ++i) floats[i] = half_to_float(halves[i]);
  } else {
    const auto* const floats = reinterpret_cast<const float*>(from.data());
    auto* const halves = reinterpret_cast<uint16_t*>(to.data());
    for (size_t i = 0; i < to.size() / sizeof(uint16_t); ++i) halves[i] = float_to_half(floats[i]);
  }
}

}  // namespace

Status LinkExchange::send(uint32_t rank, std::span<const float> rows) {
  return link_.send(rank, Channel::kSums,
                    write_rows({.step = number_}, {}, rows, spare_.take(rows.size_bytes())));
}

Result<RowsMessage> LinkExchange::receive(uint32_t rank) {
  HEARTH_ASSIGN(Message message, link_.receive(rank, Channel::kSums));
  HEARTH_ASSIGN(RowsMessage rows, read_rows(std::move(message)));
  HEARTH_TRY(rows.status);
  if (rows.step != number_)
    return Error{ErrorKind::kInternal, "the ranks disagree about the order of steps"};
  return rows;
}

Status LinkExchange::share(std::span<const float> own, std::optional<uint64_t> unit) {
  const auto part_for = [&](uint32_t rank) {
    return unit ? part(own, part_of(own.size(), rank, *unit)) : own;
  };
  ++number_;
  for (RowsMessage& last : messages_) spare_.keep(std::move(last.message));
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank()) HEARTH_TRY(send(rank, part_for(rank)));
  return receive_sources(part_for(link_.rank()));
}

Status LinkExchange::receive_sources(std::span<const float> own) {
  messages_.resize(link_.ranks());
  sources_.assign(link_.ranks(), own);
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    if (rank == link_.rank()) continue;
    HEARTH_ASSIGN(messages_[rank], receive(rank));
    sources_[rank] = messages_[rank].rows;
    if (sources_[rank].size() != own.size())
      return Error{ErrorKind::kInternal, fmt::format("rank {} has {} numbers instead of {}", rank,
                                                     sources_[rank].size(), own.size())};
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
  if (divides_adding(link_.ranks(), own.size_bytes())) return divided_sum(own, total);
  HEARTH_TRY(share(own));
  add_up(total);
  return {};
}

Status LinkExchange::divided_sum(std::span<const float> own, std::span<float> total) {
  HEARTH_TRY(share(own, 1));
  part_.resize(sources_[0].size());
  add_up(part_);
  ++number_;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank()) HEARTH_TRY(send(rank, part_));
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    RowsMessage message;
    std::span<const float> sums = part_;
    if (rank != link_.rank()) {
      HEARTH_ASSIGN(message, receive(rank));
      sums = message.rows;
    }
    const std::span<float> place = part(total, part_of(total.size(), rank, 1));
    if (sums.size() != place.size())
      return Error{ErrorKind::kInternal, fmt::format("rank {} has {} sums instead of {}", rank,
                                                     sums.size(), place.size())};
    std::ranges::copy(sums, place.begin());
    spare_.keep(std::move(message.message));
  }
  return {};
}

Status LinkExchange::sum_own(std::span<const float> own, uint32_t rows, std::span<float> total) {
  HEARTH_TRY(share(own, own.size() / rows));
  add_up(total);
  return {};
}

Status LinkExchange::gather(std::span<const std::byte> own, uint32_t rows, uint32_t width,
                            std::span<std::byte> all) {
  ++number_;
  const std::span<const float> message{reinterpret_cast<const float*>(own.data()),
                                       own.size() / sizeof(float)};
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank()) HEARTH_TRY(send(rank, message));
  const size_t row_bytes = all.size() / rows;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    RowsMessage received;
    std::span<const std::byte> source = own;
    if (rank != link_.rank()) {
      HEARTH_ASSIGN(received, receive(rank));
      source = std::as_bytes(received.rows);
    }
    const ShardRange range = own_rows({.index = rank, .count = link_.ranks()}, rows);
    const uint64_t numbers = range.size * width;
    if (source.size() != numbers * sizeof(float) && source.size() != numbers * sizeof(uint16_t))
      return Error{ErrorKind::kInternal, fmt::format("rank {} has {} bytes for {} rows", rank,
                                                     source.size(), range.size)};
    copy_numbers(source, all.subspan(range.first * row_bytes, range.size * row_bytes));
    spare_.keep(std::move(received.message));
  }
  return {};
}

Status LinkExchange::join(std::span<const float> own, uint32_t rows, std::span<float> all) {
  ++number_;
  if (link_.rank() != last_rank()) return send(last_rank(), own);
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

Status LinkExchange::merge(std::span<const float> own, uint32_t head_size, std::span<float> all,
                           bool on_last) {
  if (on_last) {
    ++number_;
    if (link_.rank() != last_rank()) return send(last_rank(), own);
    HEARTH_TRY(receive_sources(own));
  } else {
    HEARTH_TRY(share(own));
  }
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
  return send(rank, {floats, block.size() / sizeof(float)});
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
      static_cast<void>(
          link_.send(rank, Channel::kSums, write_rows({.step = number_}, error, {})).ok());
}

}  // namespace hearth
