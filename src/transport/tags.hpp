#pragma once

#include <array>
#include <cstdint>

#include "transport/transport.hpp"

/// Every tag in use. One list keeps two conversations from sharing a tag by accident. A group that
/// has lost a member uses a new range of tags (`of_generation`).
namespace syncopate::tags {

inline constexpr Tag to_coordinator{1};    ///< members' control messages to the coordinator
inline constexpr Tag from_coordinator{2};  ///< the coordinator's control messages to a member
inline constexpr Tag allgather{16};
inline constexpr Tag parts{17};  ///< of an allreduce: values to be reduced
inline constexpr Tag sums{18};   ///< of an allreduce: reduced values, on their way back
inline constexpr Tag broadcast{19};
inline constexpr Tag round_ends{20};      ///< small: a worker has finished its batch
inline constexpr Tag handover{21};        ///< a synchronization's result, for workers that lost it
inline constexpr Tag links{22};           ///< an allreduce measures latency and bandwidth of links
inline constexpr Tag server_request{24};  ///< small: a request to a parameter server
inline constexpr Tag server_reply{25};    ///< small: its reply
inline constexpr Tag server_push{26};     ///< values of a push
inline constexpr Tag server_values{27};  ///< values of a pull; in the other direction, of an upload
inline constexpr Tag server_buffers{28};  ///< in both directions
inline constexpr Tag server_state{29};    ///< the state of a shard, to shard 0
inline constexpr Tag snapshot{32};        ///< snapshots of the model, rank 0 to the evaluator
inline constexpr Tag snapshot_credit{33};
inline constexpr Tag worker_states{34};   ///< to worker 0 for a checkpoint, from it on resume
inline constexpr Tag point_to_point{35};  ///< messages from one program to another
inline constexpr Tag calls{36};           ///< small: which collective a program waits in

/// A second conversation of the same kind between the same nodes.
inline constexpr Tag beside(Tag tag) {
  return {tag.value + 128};
}

inline constexpr Tag of_generation(Tag tag, std::uint32_t generation) {
  return {tag.value + 256 * generation};
}

/// The generation for one of 256 kinds of calls; leaves 2^16 values for the group's own generation.
inline constexpr std::uint32_t of_call(std::uint32_t generation, std::uint8_t call) {
  return generation % (1U << 16) + (std::uint32_t{call} << 16);
}

/// The tag of the list above from which `beside` and `of_generation` made `tag`.
inline constexpr Tag base_of(Tag tag) {
  return {tag.value % 128};
}

/// The tags of messages with a few numbers. A node drops messages whose tag is neither in this
/// list, nor in `large`, nor one of the coordinator's.
inline constexpr std::array small{round_ends, server_request, server_reply, snapshot_credit, calls};
/// The tags of messages that grow with the model or the number of workers.
inline constexpr std::array large{allgather,     parts,          sums,         broadcast,
                                  handover,      links,          server_push,  snapshot,
                                  server_values, server_buffers, server_state, worker_states,
                                  point_to_point};

}  // namespace syncopate::tags
