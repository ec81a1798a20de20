#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/mpi/engine.hpp"
#include "transport/mpi/mpi_stream.hpp"
#include "transport/shm/host_memory.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::mpi {

/// The peers of a node and the streams to them: sends a hello to peers, validates the hellos of
/// others, and numbers the nodes that join. Of two introduced nodes, the one with the greater
/// number sends the hello.
///
/// Thread: with the engine lock.
class PeerStreams final : private LocalEndpoint {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    bool is_coordinator;
  };

  /// `engine` and `mailbox` outlive this. Takes the engine lock.
  PeerStreams(Engine& engine, mail::Mailbox& mailbox, Options options);
  /// Takes the engine lock.
  ~PeerStreams() override;
  PeerStreams(const PeerStreams&) = delete;
  PeerStreams& operator=(const PeerStreams&) = delete;

  // Any thread, once the node has joined: constant from then on.
  NodeId self() const { return self_; }
  const Site& site() const { return site_; }
  /// Null if shared memory is not wanted or the system has none.
  shm::HostMemory* memory() const { return memory_.get(); }

  /// Asks node 0 for a number.
  void ask_to_join();
  /// True once node 0 has answered, or this node was stopped.
  bool has_answer() const { return ready_ || refused_ || stopped_; }
  /// Throws the reason if node 0 gave no number.
  void check_joined() const;

  /// Errors: as `Transport::introduce`.
  void introduce(NodeId peer, const std::string& address);
  /// Errors: InternalError if the peer is unknown.
  Stream& find(NodeId peer) const;
  /// Returns null if the peer is unknown.
  Stream* find_known(NodeId peer) const;
  const std::map<NodeId, std::unique_ptr<Stream>>& all() const { return streams_; }
  bool all_are(bool (Stream::*is_so)() const) const;

  /// Throws if this node is stopped.
  void check() const;
  /// Refuses operations that begin later and ends receives, with `why`. Messages that were sent
  /// before still leave.
  void stop(const std::exception_ptr& why);
  /// Stops answering handshakes.
  void close() { closed_ = true; }

 private:
  // As `LocalEndpoint`.
  void arrived(const Site& from, const PacketHead& head,
               std::span<const std::byte> payload) override;
  bool work() override;
  void fail(const std::exception_ptr& why) override;

  Stream& add(NodeId peer, const Site& there);
  void check_peer(NodeId peer) const;
  void say_hello(Stream& stream);
  void receive_hello(const Site& from, std::span<const std::byte> frame);
  wire::Welcome validate(const Site& from, const wire::Hello& hello);
  NodeId number_of(const wire::Hello& hello);
  void receive_answer(const Site& from, const PacketHead& head, std::span<const std::byte> frame);
  void accept_welcome(Stream& stream, const wire::Welcome& welcome);
  void become_ready();
  PacketHead head(PacketKind kind, const Site& to) const;

  Engine& engine_;
  mail::Mailbox& mailbox_;
  const std::string token_;
  const bool is_coordinator_;
  NodeId self_{0};
  std::unique_ptr<shm::HostMemory> memory_;

  Site site_;
  bool ready_ = false;          ///< the node has its number
  std::exception_ptr refused_;  ///< why node 0 gave no number
  std::map<NodeId, std::unique_ptr<Stream>> streams_;
  std::map<Site, Stream*> by_site_;
  std::vector<std::pair<Site, std::vector<std::byte>>>
      early_;                   ///< hellos that came before `ready_`
  std::exception_ptr stopped_;  ///< cancelled or closed: no operation begins any more
  bool closed_ = false;
  std::uint32_t last_number_ = 0;  ///< the last one given to a joining node, by node 0
};

}  // namespace syncopate::mpi
