#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/mpi/engine.hpp"
#include "transport/mpi/mpi_session.hpp"
#include "transport/mpi/stream.hpp"
#include "transport/native_allreduce.hpp"
#include "transport/shm/host_memory.hpp"
#include "wire/handshake.hpp"

namespace syncopate::mpi {

class MpiAllreduce;

/// A node of this process: who its peers are, and how streams to them begin and end.
///
/// Of two introduced nodes the one with the greater number says hello.
///
/// Threads: state is touched with the engine's turn alone, but the mailbox and the shared memory, which have a mutex
///          of their own; nobody takes the turn while he holds one of these.
class Node final : public Transport, private LocalEndpoint {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    bool is_coordinator;
    MpiAllreduce* allreduce;  ///< null, where this rank takes no part in them
  };

  Node(Engine& engine, Options options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Gets a number from node 0. Errors: as `Session::join`.
  void join(std::chrono::milliseconds timeout);

  NodeId self() const override { return self_; }
  std::string address() const override { return to_string(site_); }
  void introduce(NodeId peer, const std::string& address) override;
  std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                       std::span<const std::byte> payload) override;
  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into) override;
  void post(NodeId to, Tag tag, std::vector<std::byte> payload) override;
  Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) override;
  void give_up(NodeId peer) override;
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
  SharedMemory* shared_memory() override { return memory_.get(); }
  NativeAllreduce* native_allreduce() override { return allreduce_.get(); }

 private:
  friend class Sending;
  class NodeAllreduce;

  // For any thread, in node.cpp.
  void await_release() noexcept;
  bool await_handle(SendHandle& handle, TimePoint deadline);
  void check() const;
  void check(NodeId peer) const;

  // With the engine lock, in node.cpp.
  Stream& find(NodeId peer) const;
  Stream& add(NodeId peer, const Site& there);
  template <class Done>
  bool wait(Engine::Lock& lock, TimePoint deadline, const Done& done) const;
  bool all(bool (Stream::*is_so)() const) const;
  void stop(const std::exception_ptr& why);

  // With the engine lock, in meeting.cpp.
  void arrived(const Site& from, const PacketHead& head,
               std::span<const std::byte> payload) override;
  bool work() override;
  void fail(const std::exception_ptr& why) override;
  void say_hello(Stream& stream);
  void hear_hello(const Site& from, std::span<const std::byte> frame);
  wire::Welcome judge(const Site& from, const wire::Hello& hello);
  NodeId number_of(const wire::Hello& hello);
  void hear_answer(const Site& from, const PacketHead& head, std::span<const std::byte> frame);
  void be_welcome(Stream& stream, const wire::Welcome& welcome);
  void be_ready();
  PacketHead head(PacketKind kind, const Site& to) const;
  void share_memory(NodeId peer, const wire::SharedSegment& segment);

  Engine& engine_;
  const std::string token_;
  const bool is_coordinator_;
  NodeId self_{0};  ///< constant once the node has joined
  mail::Mailbox mailbox_;
  /// Null where it is not wanted, or the system has none. Constant once the node has joined.
  std::unique_ptr<shm::HostMemory> memory_;
  std::unique_ptr<NativeAllreduce> allreduce_;

  Site site_;
  bool ready_ = false;  ///< the node has its number
  std::exception_ptr turned_away_;
  std::map<NodeId, std::unique_ptr<Stream>> streams_;
  std::map<Site, Stream*> by_site_;
  std::vector<std::pair<Site, std::vector<std::byte>>> early_;  ///< who said hello before
  std::exception_ptr stopped_;  ///< cancelled or closed: nothing begins any more
  bool closed_ = false;
  std::uint32_t newcomers_ = 0;  ///< numbers given away, where this node is node 0
};

}  // namespace syncopate::mpi
