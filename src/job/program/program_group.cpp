#include "job/program/program_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "collective/basic_collectives.hpp"
#include "runtime/member_ends.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// The longest message that a send copies.
constexpr std::size_t short_message = 4096;

Group::Options polling(Group::Options options, std::function<void()> poll) {
  options.poll = std::move(poll);
  return options;
}

}  // namespace

ProgramGroup::ProgramGroup(World& world, Group::Options options, Processes processes)
    : processes_(std::move(processes)),
      number_(options.number - std::min(options.number, first_number)),
      wait_limit_(options.wait_limit),
      group_(world, polling(std::move(options),
                            [this] {
                              calls_.poll();
                              interruption::throw_if_requested();
                            })),
      allreduce_(group_, Allreduce::Options{}),
      calls_(group_),
      collectives_(world),
      sends_(world) {}

std::optional<Rank> ProgramGroup::rank_of(NodeId node) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (group_.node(Rank{rank}) == node) {
      return Rank{rank};
    }
  }
  return std::nullopt;
}

std::string ProgramGroup::name_of(Rank in_job) const {
  return processes_ ? fmt::format("{} ({})", in_job.value, processes_->at(in_job.value))
                    : std::to_string(in_job.value);
}

/// What the collective was doing means nothing to a user.
RanksMissing ProgramGroup::naming_call(const RanksMissing& error,
                                       const CollectiveCall& call) const {
  LongWait wait = error.wait();
  wait.operation = call.text();
  return error_of(wait, [this](Rank rank) { return name_of(rank); });
}

/// The number of a node means nothing to a user.
template <class Body>
auto ProgramGroup::naming_workers(const Body& body) const {
  try {
    return body();
  } catch (const MemberLost&) {
    throw;
  } catch (const PeerLost& error) {
    const auto rank = rank_of(error.peer());
    if (!rank) {
      throw;
    }
    throw PeerLost(error.peer(), member_ends::left_or_ended(
                                     "worker " + name_of(group_.rank_in_job(*rank)), error.what()));
  }
}

void ProgramGroup::meet() {
  try {
    naming_workers([this] { barrier(group_); });
  } catch (const MemberLost&) {
    throw;
  } catch (const PeerLost& error) {
    const auto rank = rank_of(error.peer());
    const std::vector<std::uint32_t>& hosts = group_.hosts();
    const bool elsewhere =
        rank && !hosts.empty() && hosts[rank->value] != hosts[group_.rank().value];
    throw Error(elsewhere ? member_ends::not_reached(error.what()) : error.what());
  }
}

std::uint32_t ProgramGroup::largest(std::uint32_t number) {
  std::vector<std::uint32_t> numbers(size());
  naming_workers([&] {
    allgather(group_, std::as_bytes(std::span(&number, 1)),
              std::as_writable_bytes(std::span(numbers)));
  });
  return *std::ranges::max_element(numbers);
}

void ProgramGroup::run(const CollectiveCall& call,
                       const std::function<void(ProgramGroup&)>& collective) {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  try {
    naming_workers([&] { run_checked(call, collective); });
  } catch (const ConfigError&) {
    throw;
  } catch (const RanksMissing& error) {
    failure_ = std::make_exception_ptr(naming_call(error, call));
    std::rethrow_exception(failure_);
  } catch (const std::exception&) {
    failure_ = std::current_exception();
    throw;
  }
}

void ProgramGroup::finish() {
  collectives_.run([] {});
  sends_.run([] {});
}

void ProgramGroup::run_checked(const CollectiveCall& call,
                               const std::function<void(ProgramGroup&)>& collective) {
  calls_.begin(call);
  group_.set_call(call.digest());
  try {
    collective(*this);
    calls_.end();
  } catch (const ProtocolError&) {
    calls_.explain();
    throw;
  } catch (const PeerLost&) {
    calls_.compare_reports();  // one that has seen a difference may leave by its error
    throw;
  }
}

/// The transport's tags have room for 2^24 numbers: 2^12 groups with 2^12 tags each.
Tag ProgramGroup::tag_to_one(std::uint32_t tag) const {
  if (tag >= tags_to_one) {
    throw ConfigError(
        fmt::format("a tag is a number from 0 to {}, found {}", tags_to_one - 1, tag));
  }
  if (number_ >= tags_to_one) {
    throw ConfigError(fmt::format(
        "only the first {} groups of a job can send and receive; open fewer, or use the "
        "same again",
        tags_to_one));
  }
  return tags::of_generation(tags::point_to_point, number_ * tags_to_one + tag);
}

std::shared_ptr<Pending> ProgramGroup::send(Rank to, std::uint32_t tag,
                                            std::span<const std::byte> bytes) {
  const Tag tag_here = tag_to_one(tag);
  if (bytes.size() <= short_message) {
    transport().post(group_.node(to), tag_here, {bytes.begin(), bytes.end()});
    return nullptr;
  }
  std::shared_ptr<Transfer> transfer = transport().start_send(group_.node(to), tag_here, bytes);
  return sends_.start([this, transfer] {
    naming_workers([&] { transfer->wait(group_.world().now() + wait_limit_); });
  });
}

std::shared_ptr<Pending> ProgramGroup::receive(Rank from, std::uint32_t tag,
                                               std::span<std::byte> bytes) {
  std::shared_ptr<Transfer> transfer =
      transport().start_receive(group_.node(from), tag_to_one(tag), bytes);
  return pending_receive([this, transfer, from](TimePoint deadline) -> std::optional<Rank> {
    try {
      naming_workers([&] { transfer->wait(deadline); });
      return from;
    } catch (const TimedOut&) {
      return std::nullopt;
    } catch (const WrongSize& error) {
      throw ProtocolError(fmt::format("a receive of {} bytes from worker {} got {}",
                                      error.expected(), group_.rank_in_job(from).value,
                                      error.found()));
    }
  });
}

std::shared_ptr<Pending> ProgramGroup::receive_any(std::uint32_t tag, std::span<std::byte> bytes) {
  return pending_receive([this, tag_here = tag_to_one(tag), bytes](TimePoint deadline) {
    return take_any(tag_here, bytes, deadline);
  });
}

std::shared_ptr<Pending> ProgramGroup::pending_receive(PendingReceive::Attempt attempt) {
  return std::make_shared<PendingReceive>(group_.world(), wait_limit_, std::move(attempt));
}

std::optional<Rank> ProgramGroup::take_any(Tag tag, std::span<std::byte> bytes,
                                           TimePoint deadline) {
  const auto message = naming_workers([&] { return next_from_any(tag, deadline); });
  if (!message) {
    return std::nullopt;
  }
  if (message->payload.size() != bytes.size()) {
    throw ProtocolError(fmt::format("a receive of {} bytes from any worker got {}", bytes.size(),
                                    message->payload.size()));
  }
  std::ranges::copy(message->payload, bytes.begin());
  return rank_of(message->from);
}

/// The transport reports the loss of each peer once, to any receive from any peer: also of one that
/// is no member, or that has left after its last message.
std::optional<Message> ProgramGroup::next_from_any(Tag tag, TimePoint deadline) {
  for (;;) {
    try {
      return transport().receive(std::nullopt, tag, deadline);
    } catch (const TimedOut&) {
      return taken_from_each(tag);
    } catch (const PeerLost&) {
      if (auto message = taken_from_each(tag)) {
        return message;
      }
    }
  }
}

/// What has come from any other member. Errors: PeerLost, where none of them is left.
std::optional<Message> ProgramGroup::taken_from_each(Tag tag) {
  std::exception_ptr loss;
  bool one_is_left = false;
  for (std::uint32_t step = 1; step < size(); ++step) {
    try {
      return transport().receive(group_.node(group_.neighbour(step)), tag, group_.world().now());
    } catch (const TimedOut&) {
      one_is_left = true;
    } catch (const PeerLost&) {
      loss = std::current_exception();
    }
  }
  if (!one_is_left && loss) {
    std::rethrow_exception(loss);
  }
  return std::nullopt;
}

}  // namespace syncopate
