#include "job/front/loop_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"
#include "collective/part_reduction.hpp"
#include "job/front/loop_member.hpp"

namespace syncopate {
namespace {

/// The longest block that `syncopate::allgather`, which copies each, is for.
constexpr std::size_t small_block = 4096;

void check_ranks(const std::vector<std::uint32_t>& ranks, const LoopJob::Member& member) {
  const std::set<std::uint32_t> distinct(ranks.begin(), ranks.end());
  if (distinct.size() != ranks.size() || !distinct.contains(member.rank()) ||
      *distinct.rbegin() >= member.size()) {
    throw ConfigError(
        fmt::format("a group of worker {} needs ranks below {}, each once, {} among them, found {}",
                    member.rank(), member.size(), member.rank(),
                    ranks.empty() ? "none" : fmt::format("{}", fmt::join(ranks, ", "))));
  }
}

void check_room(const char* what, std::size_t blocks, std::size_t bytes, std::size_t room) {
  if (room != blocks * bytes) {
    throw ConfigError(
        fmt::format("{} of {} bytes from each of {} workers needs room for {}, found {}", what,
                    bytes, blocks, blocks * bytes, room));
  }
}

// In the order of `Reduction`.
constexpr std::array reduction_names{"sum", "product", "min", "max", "and", "or", "xor"};

CollectiveCall call_of(const char* kind, const Values& values, Reduction reduction,
                       std::optional<std::uint32_t> root = {}) {
  return {.kind = kind,
          .type = name_of(values.type()),
          .count = values.size(),
          .reduction = reduction_names[static_cast<std::size_t>(reduction)],
          .root = root};
}

void reduce_over(ProgramGroup& group, const Values& values, Reduction reduction) {
  if (values.type() == ValueType::float32 && reduction == Reduction::sum) {
    group.allreduce().reduce(values);
  } else {
    part_allreduce(group.group(), values, reduction);
  }
}

void gather_from_all(ProgramGroup& group, std::span<const std::byte> mine,
                     std::span<std::byte> all) {
  if (mine.size() <= small_block) {
    syncopate::allgather(group.group(), mine, all);
    return;
  }
  in_parts(mine.size(), [&](std::size_t begin, std::size_t count) {
    std::vector<std::span<std::byte>> from;
    for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
      from.push_back(all.subspan(rank * mine.size() + begin, count));
    }
    exchange(group.group(), std::vector(group.size(), mine.subspan(begin, count)), from);
  });
}

void broadcast_from(ProgramGroup& group, std::span<std::byte> bytes, Rank root) {
  in_parts(bytes.size(), [&](std::size_t begin, std::size_t count) {
    syncopate::broadcast(group.group(), bytes.subspan(begin, count), root);
  });
}

/// Errors: ConfigError, for a block that no worker takes in one message.
void expect_one_message(const char* what, std::size_t bytes) {
  if (bytes > longest_message) {
    throw ConfigError(
        fmt::format("{} of a block of {} bytes: a message has at most {}; pass the block in parts",
                    what, bytes, longest_message));
  }
}

/// Errors: in a job that trains the one that has ended it, instead of the loss of a worker.
void carry_out(LoopJob::Member& member, ProgramGroup& group, const LoopGroup::Collective& what) {
  std::optional<ProgramWaits::Operation> operation;
  if (group.size() == member.size()) {
    operation.emplace(*member.waits(), [&what] { return what.call.text(); });
  }
  try {
    group.run(what.call, what.among);
  } catch (const PeerLost&) {
    const auto end = member.trains() ? member.node().end_of_job() : nullptr;
    std::rethrow_exception(end ? end : std::current_exception());
  }
}

}  // namespace

/// This worker's side of a group.
class LoopGroup::Membership {
 public:
  Membership(std::shared_ptr<LoopJob::Member> member, std::unique_ptr<ProgramGroup> own)
      : member_(std::move(member)), own_(std::move(own)) {
    member_->opened_group();
  }
  ~Membership() {
    if (member_->is_of_this_process()) {
      if (own_ && !member_->has_left()) {
        own_->finish();
      }
      own_.reset();
      member_->closed_group();
    } else {
      abandon(std::move(own_));
      abandon(std::move(member_));
    }
  }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  LoopJob::Member& member() const { return *member_; }
  bool is_alone() const { return member_->is_alone() || size() == 1; }
  std::uint32_t rank() const { return own_ ? own_->rank().value : member_->rank(); }
  std::uint32_t size() const { return own_ ? own_->size() : member_->size(); }
  ProgramGroup& group() { return own_ ? *own_ : member_->node().everyone(); }
  /// Of collectives; null where not all workers take part: some may be about to go on.
  std::shared_ptr<ProgramWaits> waits() const {
    return size() == member_->size() ? member_->waits() : nullptr;
  }
  /// Of messages, which pass between two workers, in the same way.
  std::shared_ptr<ProgramWaits> waits_for_one() const {
    return member_->size() == 2 ? member_->waits() : nullptr;
  }

 private:
  friend class LoopGroup::Use;
  std::shared_ptr<LoopJob::Member> member_;
  std::unique_ptr<ProgramGroup> own_;  ///< null: all workers
  std::atomic<bool> in_use_ = false;
};

/// A call, while it lasts.
class LoopGroup::Use {
 public:
  explicit Use(Membership& membership) : membership_(membership) {
    membership.member().expect_own_process();
    if (membership.in_use_.exchange(true)) {
      throw ConfigError(
          "two threads use this group at the same time; call it from one, or open a group for "
          "each");
    }
  }
  ~Use() { membership_.in_use_ = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Membership& membership_;
};

LoopGroup::LoopGroup(const LoopJob& job)
    : membership_(std::make_shared<Membership>(job.member(), nullptr)) {}

LoopGroup::LoopGroup(const LoopJob& job, const std::vector<std::uint32_t>& ranks,
                     Duration wait_limit) {
  const LoopJob::Member::Use use(*job.member());
  check_ranks(ranks, *job.member());
  std::unique_ptr<ProgramGroup> own;
  if (!job.member()->is_alone()) {
    std::vector<Rank> members;
    std::ranges::transform(ranks, std::back_inserter(members),
                           [](auto rank) { return Rank{rank}; });
    own = job.member()->node().open_group(members, wait_limit);
  }
  membership_ = std::make_shared<Membership>(job.member(), std::move(own));
}

std::uint32_t LoopGroup::rank() const {
  return membership_->rank();
}

std::uint32_t LoopGroup::size() const {
  return membership_->size();
}

void LoopGroup::expect_rank(std::uint32_t rank, const char* what) const {
  if (rank >= size()) {
    throw ConfigError(
        fmt::format("{} {} is no worker of this group, which has {}", what, rank, size()));
  }
}

void LoopGroup::expect_other(std::uint32_t rank, const char* what) const {
  expect_rank(rank, what);
  if (rank == this->rank()) {
    throw ConfigError(fmt::format("{} {} is this worker itself", what, rank));
  }
}

LoopGroup::Collective LoopGroup::allreduce(const Values& values, Reduction reduction) const {
  expect_combination(values, reduction);
  return {
      .among = [values, reduction](ProgramGroup& group) { reduce_over(group, values, reduction); },
      .call = call_of("allreduce", values, reduction)};
}

LoopGroup::Collective LoopGroup::reduce(const Values& values, Reduction reduction,
                                        std::uint32_t root) const {
  expect_combination(values, reduction);
  expect_rank(root, "root");
  return {.among =
              [=](ProgramGroup& group) {
                syncopate::reduce(group.group(), values, reduction, Rank{root});
              },
          .call = call_of("reduce", values, reduction, root)};
}

LoopGroup::Collective LoopGroup::reduce_scatter(const Values& values, const Values& mine,
                                                Reduction reduction) const {
  expect_combination(values, reduction);
  const std::span<const std::byte> own = values.bytes();
  const std::span<std::byte> result = mine.bytes();
  check_room("reduce_scatter", size(), result.size(), own.size());
  return {.among =
              [=](ProgramGroup& group) {
                syncopate::reduce_scatter(group.group(), values, mine, reduction);
              },
          .alone = [=] { std::ranges::copy(own, result.begin()); },
          .call = call_of("reduce_scatter", values, reduction)};
}

LoopGroup::Collective LoopGroup::broadcast(std::span<std::byte> bytes, std::uint32_t root) const {
  expect_rank(root, "root");
  return {.among = [=](ProgramGroup& group) { broadcast_from(group, bytes, Rank{root}); },
          .call = {.kind = "broadcast", .type = "bytes", .count = bytes.size(), .root = root}};
}

LoopGroup::Collective LoopGroup::allgather(std::span<const std::byte> mine,
                                           std::span<std::byte> all) const {
  check_room("allgather", size(), mine.size(), all.size());
  return {.among = [=](ProgramGroup& group) { gather_from_all(group, mine, all); },
          .alone = [=] { std::ranges::copy(mine, all.begin()); },
          .call = {.kind = "allgather", .type = "bytes", .count = mine.size()}};
}

LoopGroup::Collective LoopGroup::gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                        std::uint32_t root) const {
  expect_rank(root, "root");
  check_room("gather", rank() == root ? size() : 0, mine.size(), all.size());
  expect_one_message("gather", mine.size());
  return {.among =
              [=](ProgramGroup& group) { syncopate::gather(group.group(), mine, all, Rank{root}); },
          .alone = [=] { std::ranges::copy(mine, all.begin()); },
          .call = {.kind = "gather", .type = "bytes", .count = mine.size(), .root = root}};
}

LoopGroup::Collective LoopGroup::scatter(std::span<const std::byte> all, std::span<std::byte> mine,
                                         std::uint32_t root) const {
  expect_rank(root, "root");
  check_room("scatter", rank() == root ? size() : 0, mine.size(), all.size());
  expect_one_message("scatter", mine.size());
  return {
      .among =
          [=](ProgramGroup& group) { syncopate::scatter(group.group(), all, mine, Rank{root}); },
      .alone = [=] { std::ranges::copy(all, mine.begin()); },
      .call = {.kind = "scatter", .type = "bytes", .count = mine.size(), .root = root}};
}

LoopGroup::Collective LoopGroup::alltoall(std::vector<std::span<const std::byte>> to,
                                          std::vector<std::span<std::byte>> from) const {
  if (to.size() != size() || from.size() != size() || to[rank()].size() != from[rank()].size()) {
    throw ConfigError(
        fmt::format("alltoall needs a block for each of {} workers and a place for each, those of "
                    "this worker of the same length, found {} and {}",
                    size(), to.size(), from.size()));
  }
  for (const std::span<const std::byte> block : to) {
    expect_one_message("alltoall", block.size());
  }
  return {.among = [=](ProgramGroup& group) { exchange(group.group(), to, from); },
          .alone = [=] { std::ranges::copy(to.front(), from.front().begin()); },
          .call = {.kind = "alltoall"}};  // of blocks that differ from worker to worker
}

LoopGroup::Collective LoopGroup::barrier() const {
  return {.among = [](ProgramGroup& group) { syncopate::barrier(group.group()); },
          .call = {.kind = "barrier"}};
}

void LoopGroup::run(const Collective& collective) {
  const Use use(*membership_);
  if (!membership_->is_alone()) {
    ProgramGroup& group = membership_->group();
    const ProgramWaits::Wait wait(membership_->waits().get());
    group.collectives().run([&] { carry_out(membership_->member(), group, collective); });
  } else if (collective.alone) {
    collective.alone();
  }
}

CollectiveWork LoopGroup::start(Collective collective) {
  if (membership_->is_alone()) {
    run(collective);
    return {};
  }
  const Use use(*membership_);
  ProgramGroup& group = membership_->group();
  return {
      group.collectives().start([&member = membership_->member(), &group,
                                 what = std::move(collective)] { carry_out(member, group, what); }),
      membership_->waits()};
}

CollectiveWork LoopGroup::send(std::span<const std::byte> bytes, std::uint32_t to,
                               std::uint32_t tag) {
  membership_->member().expect_own_process();
  expect_other(to, "the receiver");
  expect_one_message("send", bytes.size());
  return {membership_->group().send(Rank{to}, tag, bytes), membership_->waits_for_one()};
}

CollectiveWork LoopGroup::receive(std::span<std::byte> bytes, std::uint32_t from,
                                  std::uint32_t tag) {
  membership_->member().expect_own_process();
  expect_other(from, "the sender");
  return {membership_->group().receive(Rank{from}, tag, bytes), membership_->waits_for_one(),
          membership_};
}

CollectiveWork LoopGroup::receive_any(std::span<std::byte> bytes, std::uint32_t tag) {
  membership_->member().expect_own_process();
  if (membership_->is_alone()) {
    throw ConfigError("a group of one worker has nobody to receive from");
  }
  return {membership_->group().receive_any(tag, bytes), membership_->waits_for_one(), membership_};
}

}  // namespace syncopate
