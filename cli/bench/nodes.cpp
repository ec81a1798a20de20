#include "cli/bench/nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/errors.hpp"
#include "base/machine.hpp"
#include "base/random.hpp"
#include "cli/bench/bench_processes.hpp"
#include "collective/basic_collectives.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/launcher.hpp"
#include "runtime/real_world.hpp"
#include "transport/tags.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {
namespace {

/// A node's entry in the list that node 0 collects and sends to all nodes.
struct Entry {
  std::uint32_t index;
  NodeId node;
  std::array<char, 512> address;  ///< up to the first zero
  std::array<char, 96> machine;   ///< by `machine_identity`
};

std::unique_ptr<Transport> make_node(const BenchEndpoint& endpoint, std::uint32_t index) {
  const bool encrypted = endpoint.transport == encrypted_transport;
  const std::string_view transport = encrypted ? "tcp" : std::string_view(endpoint.transport);
  TransportOptions options{.token = endpoint.token,
                           .encrypted = encrypted,
                           .unencrypted = !encrypted,
                           .session = endpoint.session};
  if (index == 0) {
    options.address = endpoint.coordinator;
    options.descriptor = endpoint.listener;
    return listen_over(transport, options);
  }
  options.coordinator = endpoint.coordinator;
  options.address = endpoint.address;
  return join_over(transport, options);
}

std::vector<std::byte> packed(const Entry* entries, std::size_t count) {
  std::vector<std::byte> bytes(count * sizeof(Entry));
  std::memcpy(bytes.data(), entries, bytes.size());
  return bytes;
}

std::vector<Entry> unpacked(const std::vector<std::byte>& bytes) {
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

template <std::size_t size>
void put(const std::string& text, std::array<char, size>& into) {
  if (text.size() >= into.size()) {
    throw InternalError("\"" + text + "\" does not fit into a message");
  }
  std::copy(text.begin(), text.end(), into.begin());
}

Entry entry_of(const Transport& transport, std::uint32_t index) {
  Entry entry{.index = index, .node = transport.self(), .address = {}, .machine = {}};
  put(transport.address(), entry.address);
  put(machine_identity(), entry.machine);
  return entry;
}

std::string absent(std::uint32_t nodes, const std::vector<Entry>& present) {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t index = 0; index < nodes; ++index) {
    if (std::none_of(present.begin(), present.end(),
                     [&](const Entry& entry) { return entry.index == index; })) {
      missing.push_back(index);
    }
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

Entry next_of(Transport& transport, std::uint32_t nodes, const std::vector<Entry>& present,
              TimePoint deadline) {
  const auto heard = transport.try_receive(std::nullopt, tags::to_coordinator, deadline);
  if (!heard) {
    throw TimedOut(fmt::format("{} of {} ranks have joined; waiting for {}", present.size(), nodes,
                               absent(nodes, present)));
  }
  return unpacked(heard->payload).at(0);
}

/// Node 0 collects the entries of all nodes and sends them to all. The transport numbers nodes in
/// the order in which they connect, so each entry also holds the index of the process.
std::vector<Entry> meet(Transport& transport, const Attendance& attendance, TimePoint deadline) {
  const Entry own = entry_of(transport, attendance.index);
  std::vector<Entry> entries{own};
  if (own.index != 0) {
    transport.post(coordinator_node, tags::to_coordinator, packed(&own, 1));
    return unpacked(transport.receive(coordinator_node, tags::from_coordinator, deadline).payload);
  }
  Transport& host = attendance.host != nullptr ? *attendance.host : transport;
  while (entries.size() < attendance.nodes) {
    entries.push_back(next_of(host, attendance.nodes, entries, deadline));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.index < b.index; });
  for (const Entry& entry : entries) {
    if (entry.index != 0) {
      host.post(entry.node, tags::from_coordinator, packed(entries.data(), entries.size()));
    }
  }
  return entries;
}

/// The host of each node; hosts are numbered in the order of their first node.
std::vector<std::uint32_t> hosts_of(const std::vector<Entry>& entries) {
  std::map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> hosts;
  for (const Entry& entry : entries) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    hosts.push_back(numbers.emplace(entry.machine.data(), next).first->second);
  }
  return hosts;
}

int run_between_hosts(const BenchCommand& command, const Launch& launch,
                      const KnownCoordinator& known, const std::vector<std::string>& names,
                      const std::function<void(Node&)>& body) {
  const bool encrypted = command.transport == encrypted_transport;
  return run_rank(command.form, names, launch, [&](std::uint32_t index, BenchReporter& reporter) {
    take_part_between_hosts(known, encrypted ? "tcp" : std::string_view(command.transport),
                            {.token = known.key, .encrypted = encrypted, .unencrypted = !encrypted},
                            {.nodes = launch.size, .index = index}, [&](World& world, Group& all) {
                              Node node{world, all, reporter};
                              body(node);
                            });
  });
}

}  // namespace

void take_part(std::unique_ptr<Transport> carrier, const Attendance& attendance,
               const std::function<void(World&, Group&)>& body) {
  RealWorld world(std::move(carrier));
  Transport& transport = world.transport();
  const auto entries = meet(transport, attendance, world.now() + attendance.patience);
  Group::Options options{.members = {}, .self = Rank{attendance.index}, .hosts = hosts_of(entries)};
  for (const Entry& entry : entries) {
    options.members.push_back(entry.node);
    if (entry.node != transport.self()) {
      transport.introduce(entry.node, entry.address.data());
    }
  }
  Group all(world, std::move(options));
  body(world, all);
  barrier(all);
  transport.close(world.now() + attendance.patience);
}

void take_part_between_hosts(const KnownCoordinator& known, std::string_view transport,
                             TransportOptions own, Attendance attendance,
                             const std::function<void(World&, Group&)>& body) {
  std::unique_ptr<Transport> host;
  if (attendance.index == 0) {
    TransportOptions listening = own;
    listening.address = known.address;
    listening.control_only = true;
    host = listen_over(transport, listening);
    attendance.host = host.get();
  }
  own.coordinator = known.address;
  own.address = {};
  own.interface = known.place.interface;
  own.ports = known.place.ports;
  take_part(join_over(transport, own), attendance, body);
}

void take_part(const BenchEndpoint& endpoint, std::uint32_t index,
               const std::function<void(World&, Group&)>& body) {
  take_part(make_node(endpoint, index), {.nodes = endpoint.nodes, .index = index}, body);
}

int run_nodes(const BenchCommand& command, const std::vector<std::string>& names,
              const std::function<void(Node&)>& body) {
  if (command.transport == "mpi") {
    return run_rank(command.form, names, [&](mpi::Session& session, BenchReporter& reporter) {
      const BenchEndpoint endpoint{.transport = command.transport,
                                   .token = "bench",
                                   .coordinator = {},
                                   .nodes = session.size(),
                                   .session = &session};
      take_part(endpoint, session.rank(), [&](World& world, Group& all) {
        Node node{world, all, reporter};
        body(node);
      });
    });
  }
  const auto known = known_coordinator(from_environment);
  if (const auto launch = own_launch(); launch && known) {
    return run_between_hosts(command, *launch, *known, names, body);
  }
  const ListeningSocket listener = listen_on_loopback();
  const BenchEndpoint endpoint{.transport = command.transport,
                               .token = unguessable_token(),
                               .coordinator = listener.address,
                               .listener = listener.socket.get(),
                               .nodes = static_cast<std::uint32_t>(names.size())};
  return run_processes(names, command.form, [&](std::uint32_t index, BenchReporter& reporter) {
    take_part(endpoint, index, [&](World& world, Group& all) {
      Node node{world, all, reporter};
      body(node);
    });
  });
}

}  // namespace syncopate::cli
