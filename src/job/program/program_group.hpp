#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "job/program/call_check.hpp"
#include "job/program/collective_queue.hpp"
#include "job/program/pending_receive.hpp"

namespace syncopate {

/// Some programs of a job, or all of them, with collectives of their own: those of several groups
/// go on at the same time.
///
/// Thread: `send`, `receive` and `receive_any` any; the others one, `group` and `allreduce` inside
///         what `collectives` carries out alone.
class ProgramGroup {
 public:
  /// By the rank in the job: "pid 4711 on c3".
  using Processes = std::shared_ptr<const std::vector<std::string>>;

  /// `options.number` distinguishes it from the other groups of the job. The world outlives this.
  /// Errors name members by their ranks and, unless it is null, by `processes`.
  ProgramGroup(World& world, Group::Options options, Processes processes = nullptr);

  std::uint32_t size() const { return group_.size(); }
  Rank rank() const { return group_.rank(); }

  /// Before the first collective: connects each member to others, whose loss it cannot notice
  /// otherwise. Errors: PeerLost names the worker.
  void meet();
  /// The largest of the members' numbers. Errors: PeerLost names the worker.
  std::uint32_t largest(std::uint32_t number);

  Group& group() { return group_; }
  Allreduce& allreduce() { return allreduce_; }
  /// Runs a collective. Errors: PeerLost names the worker, not the node; ConfigError, where another
  /// member calls another one. After any other error every later collective fails by the same: what
  /// this member left undone, a late one may still send.
  void run(const CollectiveCall& call, const std::function<void(ProgramGroup&)>& collective);
  /// Waits for all collectives and sends under way, not for receives. Their errors are not thrown
  /// here, but by `wait` of each.
  void finish();
  /// Carries out what uses the group.
  CollectiveQueue& collectives() { return collectives_; }

  /// Groups of programs are numbered from here on: the transport is that of a training, too, whose
  /// groups have the generations below.
  static constexpr std::uint32_t first_number = 1U << 14;

  /// What passes between two programs is matched by their ranks and a tag below this.
  static constexpr std::uint32_t tags_to_one = 1U << 12;

  /// Begins to send bytes to one other program, which stay as they are until they have been sent.
  /// Null: that has happened already. Errors: ConfigError, for an impossible tag.
  std::shared_ptr<Pending> send(Rank to, std::uint32_t tag, std::span<const std::byte> bytes);
  /// Begins to receive bytes from one other program, as many as it sends.
  std::shared_ptr<Pending> receive(Rank from, std::uint32_t tag, std::span<std::byte> bytes);
  /// The next bytes of any other program under the tag. What has come is taken by the one that asks
  /// first. Errors: also ProtocolError, where they are not as many as expected.
  std::shared_ptr<Pending> receive_any(std::uint32_t tag, std::span<std::byte> bytes);

 private:
  Tag tag_to_one(std::uint32_t tag) const;
  std::optional<Rank> rank_of(NodeId node) const;
  void run_checked(const CollectiveCall& call,
                   const std::function<void(ProgramGroup&)>& collective);
  template <class Body>
  auto naming_workers(const Body& body) const;
  std::string name_of(Rank in_job) const;
  RanksMissing naming_call(const RanksMissing& error, const CollectiveCall& call) const;
  std::shared_ptr<Pending> pending_receive(PendingReceive::Attempt attempt);
  std::optional<Rank> take_any(Tag tag, std::span<std::byte> bytes, TimePoint deadline);
  std::optional<Message> next_from_any(Tag tag, TimePoint deadline);
  std::optional<Message> taken_from_each(Tag tag);
  Transport& transport() { return group_.transport(); }

  const Processes processes_;
  const std::uint32_t number_;
  const Duration wait_limit_;
  Group group_;
  Allreduce allreduce_;
  CallCheck calls_;
  std::exception_ptr failure_;  ///< of an earlier collective
  // Last: their operations use the members above.
  CollectiveQueue collectives_;
  CollectiveQueue sends_;  ///< waits for those under way
};

}  // namespace syncopate
