#include "collective/group.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/errors.hpp"

namespace syncopate {

Group::Group(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      generation_(options_.number),
      waits_({.limit = options_.wait_limit, .arbiter = options_.arbiter}),
      scratch_(std::make_shared<std::vector<float>>()) {
  if (options_.self.value >= options_.members.size()) {
    throw InternalError("a group's own rank is not among its members");
  }
  if (options_.hosts.empty()) {
    options_.hosts.resize(size());
    std::iota(options_.hosts.begin(), options_.hosts.end(), 0U);
  }
  if (options_.hosts.size() != size()) {
    throw InternalError(
        fmt::format("a group of {} members on {} hosts", size(), options_.hosts.size()));
  }
  ranks_in_job_ = options_.ranks_in_job;
  for (auto rank = static_cast<std::uint32_t>(ranks_in_job_.size()); rank < size(); ++rank) {
    ranks_in_job_.push_back(Rank{rank});
  }
}

Group Group::subgroup(const std::vector<Rank>& ranks) const {
  Group part(*this);
  part.options_.members.clear();
  part.options_.hosts.clear();
  part.ranks_in_job_.clear();
  for (const Rank member : ranks) {
    part.options_.members.push_back(node(member));
    part.options_.hosts.push_back(hosts()[member.value]);
    part.ranks_in_job_.push_back(rank_in_job(member));
  }
  const auto self = std::find(ranks.begin(), ranks.end(), rank());
  part.options_.self = Rank{static_cast<std::uint32_t>(self - ranks.begin())};
  return part;
}

Group Group::duplicate() const {
  Group other(*this);
  other.options_.failures = nullptr;
  other.is_duplicate_ = true;
  other.scratch_ = std::make_shared<std::vector<float>>();
  return other;
}

void Group::drop_lost() {
  if (!options_.failures) {
    return;
  }
  const std::vector<Rank> lost = options_.failures->lost();
  for (; generation_ < lost.size(); ++generation_) {
    drop(lost[generation_]);
  }
}

void Group::drop(Rank in_job) {
  const auto gone = std::find(ranks_in_job_.begin(), ranks_in_job_.end(), in_job);
  if (gone == ranks_in_job_.end() || in_job == rank_in_job(rank())) {
    throw InternalError(
        fmt::format("worker {} was notified of the loss of worker {}, which is itself or no member "
                    "of its group",
                    rank_in_job(rank()).value, in_job.value));
  }
  const auto index = gone - ranks_in_job_.begin();
  ranks_in_job_.erase(gone);
  options_.members.erase(options_.members.begin() + index);
  options_.hosts.erase(options_.hosts.begin() + index);
  options_.self.value -= index < static_cast<std::ptrdiff_t>(rank().value) ? 1 : 0;
}

void Group::await(Transfer& receive, Rank from, const char* operation) {
  await([&](TimePoint until) { receive.wait(until); },
        {.operation = operation, .missing = [&] { return std::vector{rank_in_job(from)}; }});
}

void Group::await(const Waits::Attempt& wait, const Waits::Awaited& awaited) {
  if (options_.failures) {
    waits_.run(world_, wait, awaited, [this] { check(); });
  } else {
    waits_.run(world_, wait, awaited, options_.poll);
  }
}

void Group::check() const {
  if (options_.failures->lost().size() > generation_ || options_.failures->all_finished()) {
    throw ViewChanged(
        fmt::format("the group of generation {} has lost a member or finished", generation_));
  }
}

std::span<float> Group::scratch(std::size_t count) {
  if (scratch_->size() < count) {
    scratch_->resize(count);
  }
  return std::span(*scratch_).first(count);
}

}  // namespace syncopate
