#include "engine/ranks/link_exchange.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth {

Result<RowsMessage> LinkExchange::receive(uint32_t rank) {
  HEARTH_ASSIGN(Message message, link_.receive(rank, Channel::kSums));
  HEARTH_ASSIGN(RowsMessage rows, read_rows(std::move(message)));
  HEARTH_TRY(rows.status);
  if (rows.step != number_)
    return Error{ErrorKind::kInternal, "the ranks disagree about the order of steps"};
  return rows;
}

Status LinkExchange::sum(std::span<const float> own, std::span<float> total) {
  ++number_;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank())
      HEARTH_TRY(link_.send(rank, Channel::kSums, write_rows({.step = number_}, {}, own)));
  messages_.resize(link_.ranks());
  sources_.assign(link_.ranks(), own);
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    if (rank == link_.rank()) continue;
    HEARTH_ASSIGN(messages_[rank], receive(rank));
    sources_[rank] = messages_[rank].rows;
    if (sources_[rank].size() != own.size())
      return Error{ErrorKind::kInternal,
                   fmt::format("rank {} has {} numbers to add up instead of {}", rank,
                               sources_[rank].size(), own.size())};
  }
  // `total` may be memory that is slow to read, so every number is written once.
  const std::span<const float> first = sources_[0], second = sources_[1];
  if (sources_.size() == 2) {
    for (size_t i = 0; i < total.size(); ++i) total[i] = first[i] + second[i];
    return {};
  }
  for (size_t i = 0; i < total.size(); ++i) {
    float sum = first[i];
    for (size_t rank = 1; rank < sources_.size(); ++rank) sum += sources_[rank][i];
    total[i] = sum;
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

void LinkExchange::give_up(const Error& error) {
  if (std::exchange(gave_up_, true)) return;
  // If the link has failed, the others know.
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    if (rank != link_.rank())
      static_cast<void>(link_.send(rank, Channel::kSums, write_rows({.step = number_}, error, {})).ok());
}

}  // namespace hearth
