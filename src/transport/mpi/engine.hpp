#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/time.hpp"
#include "transport/mpi/calls.hpp"
#include "transport/mpi/packet.hpp"
#include "transport/mpi/poll_backoff.hpp"

namespace syncopate::mpi {

/// A transfer of MPI, until it is done.
struct Operation {
  Calls::Request request;
  std::vector<std::byte> owned{};  ///< the bytes that it reads, unless they are borrowed
  std::function<void(const Calls::Done&)> done;
};
using OperationHandle = std::shared_ptr<Operation>;

/// The engine's interface to a node of this process. The engine calls it with the engine lock.
class LocalEndpoint {
 public:
  virtual ~LocalEndpoint() = default;
  virtual void arrived(const Site& from, const PacketHead& head,
                       std::span<const std::byte> payload) = 0;
  /// Makes progress; returns true if anything moved.
  virtual bool work() = 0;
  /// The engine can neither send nor receive any more.
  virtual void fail(const std::exception_ptr& why) = 0;
};

/// Calls MPI for all nodes of a process.
///
/// Threads: a thread calls MPI with the engine lock, one at a time, and only calls that do not
///          block. The engine's own thread starts and ends MPI, and polls for every operation on
///          which no thread waits in a loop of its own. A thread sleeps with the engine lock only
///          in `changed`.
class Engine {
 public:
  using Lock = std::unique_lock<EngineLock>;

  /// Errors: those of `make`.
  explicit Engine(const std::function<std::unique_ptr<Calls>()>& make);
  /// Ends MPI, which waits for the other ranks.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Lock acquire_lock() { return Lock(lock_); }
  Calls& calls() { return *calls_; }
  /// Notified when something has changed for a waiting thread. Wait on it with the engine lock.
  std::condition_variable_any& changed() { return changed_; }

  /// Makes the engine's thread poll soon. Any thread, under any lock.
  void wake() { wakeup_.notify(); }
  /// Call this if the host has more ranks than cores: polling threads then yield at once.
  void share_cores() { has_core_ = false; }

  /// Blocks, without the engine lock, until a collective operation is done. `check` throws if the
  /// operation cannot end. Errors: TimedOut; the operation then continues.
  void await(Calls::Request request, TimePoint deadline, const std::function<void()>& check = {});

  // With the engine lock.
  bool has_failed() const { return failed_ != nullptr; }
  std::uint16_t add(LocalEndpoint& endpoint, bool is_coordinator);
  void remove(std::uint16_t slot);
  void send(const Site& to, const PacketHead& head, std::span<const std::byte> payload = {});
  OperationHandle send_piece(std::uint32_t to, std::uint32_t transfer,
                             std::span<const std::byte> bytes,
                             std::function<void(const Calls::Done&)> done);
  OperationHandle receive_piece(std::uint32_t from, std::uint32_t transfer,
                                std::span<std::byte> into,
                                std::function<void(const Calls::Done&)> done);
  void cancel(const OperationHandle& operation) { calls_->cancel(operation->request); }
  std::uint32_t next_transfer();

 private:
  struct UnmatchedSender {
    Site from;
    PacketHead head;
    std::vector<std::byte> payload;
  };

  void run(const std::function<std::unique_ptr<Calls>()>& make, std::promise<void> started);
  void loop();
  void end();
  bool poll_once();
  bool poll();
  bool take_packet();
  void deliver(const Site& from, const PacketHead& head, std::span<const std::byte> payload);
  void answer_for_absent(const Site& from, const PacketHead& head,
                         std::span<const std::byte> payload);
  void post_receives();
  void post_receive(std::size_t slot);
  bool test_operations();
  OperationHandle keep(Operation operation);
  void fail(const std::exception_ptr& why);

  EngineLock lock_;
  std::condition_variable_any changed_;
  WakeupEvent wakeup_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> has_core_ = true;  ///< every rank of the host has a core

  // With the engine lock.
  std::unique_ptr<Calls> calls_;
  std::map<std::uint16_t, LocalEndpoint*> endpoints_;
  std::uint16_t slots_ = 0;  ///< the greatest slot in use so far
  bool coordinator_was_here_ = false;
  std::vector<UnmatchedSender> early_;  ///< hellos that came before node 0 was here
  std::uint32_t transfers_ = 0;
  std::vector<OperationHandle> operations_;
  /// Receives of packets are posted in a ring: the packets of one sender fill them in order.
  struct Slot {
    Calls::Request request;
    std::vector<std::byte> bytes;
  };
  std::vector<Slot> ring_;
  std::size_t next_ = 0;
  std::exception_ptr failed_;

  std::thread thread_;  ///< last: it uses everything above
};

}  // namespace syncopate::mpi
