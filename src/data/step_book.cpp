#include "data/step_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

const std::vector<std::uint32_t>& StepBook::parts(Epoch epoch, std::uint64_t step,
                                                  const std::vector<std::uint32_t>& proposed) {
  if (proposed.size() != workers_ || std::ranges::count(proposed, 0U) > 0) {
    throw ProtocolError(fmt::format("a worker divides a step into {} parts for {} workers",
                                    proposed.size(), workers_));
  }
  const Run key{epoch, step / run};
  const auto [found, added] = parts_.try_emplace(key, proposed);
  if (added) {
    order_.push_back(key);
  }
  if (order_.size() > kept) {
    parts_.erase(order_.front());
    order_.pop_front();
  }
  return found->second;
}

}  // namespace syncopate
