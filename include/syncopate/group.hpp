#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/values.hpp>
#include <type_traits>
#include <utility>
#include <vector>

/// Collectives of all or some workers of a job. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

/// A collective, a send or a receive that runs in the background.
///
/// Thread: any; only one waits for a receive.
class CollectiveWork {
 public:
  /// A collective that has ended already.
  CollectiveWork() = default;
  /// Takes ownership of a work of the C interface.
  explicit CollectiveWork(syncopate_work* work) : work_(work, syncopate_work_free) {}

  /// True once the collective has ended.
  bool done() const { return !work_ || syncopate_work_is_done(work_.get()) != 0; }
  /// Returns once the collective has ended. Errors: those of the collective, in every call;
  /// Cancelled if the program left the job before the collective began.
  void wait() {
    if (work_) {
      detail::check(syncopate_work_wait(work_.get()));
    }
  }
  /// The sender of a receive that has ended; else SYNCOPATE_ANY.
  std::uint32_t source() const {
    return work_ ? syncopate_work_source(work_.get()) : SYNCOPATE_ANY;
  }

 private:
  std::shared_ptr<syncopate_work> work_;  ///< null: it has ended
};

/// Some or all workers of a job.
///
/// Collectives: every member calls those of one group in the same order, with the same types and
///              lengths. An `_async` call returns at once; the collectives run one after the other
///              in the order of the calls. Do not change values that they read or write until they
///              have ended. Those of several groups run concurrently, and so do sends and receives.
/// Values: a container of contiguous values, such as a std::vector, std::array or std::span.
/// Copies: refer to the same group.
/// Thread: one collective of a group at a time; other threads may use other groups or the job. Any
///         thread may send and receive.
/// Errors: PeerLost and TimedOut if another program has ended or has not arrived within the group's
///         time limit; ConfigError for invalid lengths and ranks, and in a forked process.
class Group {
 public:
  /// Marks a group that belongs to the job.
  enum OfTheJob { of_the_job };

  /// Takes ownership of a group and closes it.
  explicit Group(syncopate_group* group) : group_(group, syncopate_group_close) {}
  /// Refers to a group that the job closes.
  Group(syncopate_group* group, OfTheJob) : group_(group, [](syncopate_group*) {}) {}
  /// Shares a group with its other owners.
  explicit Group(std::shared_ptr<syncopate_group> group) : group_(std::move(group)) {}

  /// The rank of this worker in the group, from 0 on.
  std::uint32_t rank() const { return syncopate_group_rank(handle()); }
  /// The number of members.
  std::uint32_t size() const { return syncopate_group_size(handle()); }

  /// Describes the bytes of the next collective, such as "float32": if the descriptions of members
  /// differ, all of them get a ConfigError, in that collective or a later one. `broadcast` and
  /// `allgather` of values and tensors call it themselves.
  void next_type(const std::string& type) {
    detail::check(syncopate_next_type(handle(), type.c_str()));
  }

  /// Replaces `values` (float, double, Bfloat16, Float16, and integers of 8, 32 or 64 bits) by
  /// their reduction over all members. The bits are the same on each member. Integers wrap around;
  /// bfloat16 and float16 values are combined in float32.
  template <class Values>
  void allreduce(Values&& values, syncopate_operation operation = SYNCOPATE_SUM) {
    allreduce(std::data(values), std::size(values), detail::type_of<detail::ValueOf<Values>>(),
              operation);
  }
  /// As `allreduce`, but returns at once.
  template <class Values>
  CollectiveWork allreduce_async(Values&& values, syncopate_operation operation = SYNCOPATE_SUM) {
    return allreduce_async(std::data(values), std::size(values),
                           detail::type_of<detail::ValueOf<Values>>(), operation);
  }
  /// As `allreduce`, for `count` values of a type of the C interface.
  void allreduce(void* values, std::size_t count, syncopate_type type,
                 syncopate_operation operation = SYNCOPATE_SUM) {
    detail::check(syncopate_allreduce(handle(), values, count, type, operation, nullptr));
  }
  /// As `allreduce`, but returns at once.
  CollectiveWork allreduce_async(void* values, std::size_t count, syncopate_type type,
                                 syncopate_operation operation = SYNCOPATE_SUM) {
    return started([&](syncopate_work** work) {
      return syncopate_allreduce(handle(), values, count, type, operation, work);
    });
  }

  /// Replaces `values` by their reduction on member `root`; the values of other members do not
  /// change.
  template <class Values>
  void reduce(Values&& values, std::uint32_t root = 0,
              syncopate_operation operation = SYNCOPATE_SUM) {
    detail::check(syncopate_reduce(handle(), std::data(values), std::size(values),
                                   detail::type_of<detail::ValueOf<Values>>(), operation, root,
                                   nullptr));
  }

  /// Returns, on member r, block r of the reduction of `values`, which has one block of the same
  /// length per member.
  template <class Values>
  auto reduce_scatter(const Values& values, syncopate_operation operation = SYNCOPATE_SUM) {
    using Value = std::remove_const_t<detail::ValueOf<const Values>>;
    if (std::size(values) % size() != 0) {
      throw ConfigError("reduce_scatter needs a block of the same length for each member, found " +
                        std::to_string(std::size(values)) + " values for " +
                        std::to_string(size()) + " members");
    }
    std::vector<Value> mine(std::size(values) / size());
    detail::check(syncopate_reduce_scatter(handle(), std::data(values), mine.data(), mine.size(),
                                           detail::type_of<Value>(), operation, nullptr));
    return mine;
  }

  /// Replaces `values`, of any type, by those of member `root`.
  template <class Values>
  void broadcast(Values&& values, std::uint32_t root = 0) {
    next_type(detail::type_name<std::remove_const_t<detail::ValueOf<Values>>>());
    broadcast(static_cast<void*>(std::data(values)), detail::bytes_of(values), root);
  }
  /// As `broadcast`, but returns at once.
  template <class Values>
  CollectiveWork broadcast_async(Values&& values, std::uint32_t root = 0) {
    next_type(detail::type_name<std::remove_const_t<detail::ValueOf<Values>>>());
    return broadcast_async(static_cast<void*>(std::data(values)), detail::bytes_of(values), root);
  }
  /// As `broadcast`, for `bytes` bytes.
  void broadcast(void* values, std::size_t bytes, std::uint32_t root = 0) {
    detail::check(syncopate_broadcast(handle(), values, bytes, root, nullptr));
  }
  /// As `broadcast`, but returns at once.
  CollectiveWork broadcast_async(void* values, std::size_t bytes, std::uint32_t root = 0) {
    return started([&](syncopate_work** work) {
      return syncopate_broadcast(handle(), values, bytes, root, work);
    });
  }

  /// Sets block r of `all`, `bytes` bytes, to the `mine` of member r.
  void allgather(const void* mine, std::size_t bytes, void* all) {
    detail::check(syncopate_allgather(handle(), mine, bytes, all, nullptr));
  }
  /// As `allgather`, but returns at once.
  CollectiveWork allgather_async(const void* mine, std::size_t bytes, void* all) {
    return started([&](syncopate_work** work) {
      return syncopate_allgather(handle(), mine, bytes, all, work);
    });
  }
  /// Returns the values of all members, by rank. Each member passes the same number of values.
  template <class Values>
  auto allgather(const Values& mine) {
    using Value = std::remove_const_t<detail::ValueOf<const Values>>;
    std::vector<Value> all(std::size(mine) * size());
    next_type(detail::type_name<Value>());
    allgather(std::data(mine), detail::bytes_of(mine), all.data());
    return all;
  }

  /// Returns once every member has called it.
  void barrier() { detail::check(syncopate_barrier(handle(), nullptr)); }
  /// As `barrier`, but returns at once; the work ends once every member has called it.
  CollectiveWork barrier_async() {
    return started([&](syncopate_work** work) { return syncopate_barrier(handle(), work); });
  }

  /// Sends bytes to one other member, which receives the same number with the same tag, a number
  /// below 4096.
  void send(const void* values, std::size_t bytes, std::uint32_t to, std::uint32_t tag = 0) {
    detail::check(syncopate_send(handle(), values, bytes, to, tag, nullptr));
  }
  /// As `send`, but returns at once.
  CollectiveWork send_async(const void* values, std::size_t bytes, std::uint32_t to,
                            std::uint32_t tag = 0) {
    return started([&](syncopate_work** work) {
      return syncopate_send(handle(), values, bytes, to, tag, work);
    });
  }
  /// Receives a message that another member sends with the same tag and the same number of bytes.
  /// `from`: a member, or SYNCOPATE_ANY.
  void receive(void* values, std::size_t bytes, std::uint32_t from, std::uint32_t tag = 0) {
    detail::check(syncopate_receive(handle(), values, bytes, from, tag, nullptr));
  }
  /// As `receive`, but returns at once.
  CollectiveWork receive_async(void* values, std::size_t bytes, std::uint32_t from,
                               std::uint32_t tag = 0) {
    return started([&](syncopate_work** work) {
      return syncopate_receive(handle(), values, bytes, from, tag, work);
    });
  }

  /// The group of the C interface, which also has gather, scatter and alltoall.
  syncopate_group* handle() const { return detail::handle_of(group_, "group"); }

 private:
  template <class Start>
  static CollectiveWork started(const Start& start) {
    syncopate_work* work = nullptr;
    detail::check(start(&work));
    return CollectiveWork(work);
  }

  std::shared_ptr<syncopate_group> group_;
};

}  // namespace v0
}  // namespace syncopate
