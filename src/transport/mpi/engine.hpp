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

/// A transfer of MPI's, until it is done.
struct Operation {
  Calls::Request request;
  std::vector<std::byte> owned{};  ///< what it reads, unless that is lent
  std::function<void(const Calls::Done&)> done;
};
using OperationHandle = std::shared_ptr<Operation>;

/// A node of this process, as the engine knows it. Called with the engine lock.
class LocalEndpoint {
 public:
  virtual ~LocalEndpoint() = default;
  virtual void arrived(const Site& from, const PacketHead& head,
                       std::span<const std::byte> payload) = 0;
  /// Does what can be done now; whether that was anything.
  virtual bool work() = 0;
  /// Nothing can be sent or received any more.
  virtual void fail(const std::exception_ptr& why) = 0;
};

/// The one place of a process that calls MPI, for all of its nodes.
///
/// Threads: whoever has the turn may call; MPI hears one thread at a time, and never a call that blocks. The engine's
///          own thread, which starts and ends MPI, looks after everything that nobody waits for in a loop of his
///          own. Nobody sleeps with the engine lock but in `changed`.
class Engine {
 public:
  using Lock = std::unique_lock<EngineLock>;

  /// Errors: what `make` throws.
  explicit Engine(const std::function<std::unique_ptr<Calls>()>& make);
  /// Ends MPI, which waits for the other ranks.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Lock acquire_lock() { return Lock(lock_); }
  Calls& calls() { return *calls_; }
  /// Told where something that was waited for has come, to be waited for with the engine lock.
  std::condition_variable_any& changed() { return changed_; }

  /// Looks soon. Any thread, under any lock.
  void wake() { wakeup_.notify(); }
  /// More ranks share this host than it has cores.
  void share_cores() { alone_ = false; }

  /// Blocks, without the turn, until a collective operation is done; `check` throws where that is in vain.
  /// Errors: TimedOut, and the operation goes on.
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
  bool look();
  bool poll();
  bool take_packet();
  void deliver(const Site& from, const PacketHead& head, std::span<const std::byte> payload);
  void answer_for_nobody(const Site& from, const PacketHead& head,
                         std::span<const std::byte> payload);
  void await_packets();
  void post_receive(std::size_t place);
  bool test_operations();
  OperationHandle keep(Operation operation);
  void fail(const std::exception_ptr& why);

  EngineLock lock_;
  std::condition_variable_any changed_;
  WakeupEvent wakeup_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> alone_ = true;

  // With the engine lock.
  std::unique_ptr<Calls> calls_;
  std::map<std::uint16_t, LocalEndpoint*> endpoints_;
  std::uint16_t slots_ = 0;  ///< the greatest that was given away
  bool coordinator_was_here_ = false;
  std::vector<UnmatchedSender> early_;  ///< who says hello to a hub that is not here yet
  std::uint32_t transfers_ = 0;
  std::vector<OperationHandle> operations_;
  /// Packets are awaited in a ring, since those of one sender come in the order of the receives.
  struct Place {
    Calls::Request request;
    std::vector<std::byte> bytes;
  };
  std::vector<Place> ring_;
  std::size_t next_ = 0;
  std::exception_ptr failed_;

  std::thread thread_;  ///< last: it uses everything above
};

}  // namespace syncopate::mpi
