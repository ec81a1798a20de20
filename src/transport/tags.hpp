#pragma once

#include "transport/transport.hpp"

/// Every tag in use, in one place, so that no two conversations share one by accident. Those of a group
/// begin anew, `of_generation` apart, whenever it has lost a member.
namespace syncopate::tags {

inline constexpr Tag to_coordinator{1};    ///< members' control messages to the coordinator
inline constexpr Tag from_coordinator{2};  ///< the coordinator's control messages to a member
inline constexpr Tag allgather{16};
inline constexpr Tag parts{17};  ///< of an allreduce: values that are to be added
inline constexpr Tag sums{18};   ///< of an allreduce: complete ones, on their way back
inline constexpr Tag broadcast{19};
inline constexpr Tag round_ends{20};  ///< small: a worker has finished its batch
inline constexpr Tag handover{21};    ///< a meeting's result, to those in whose hands it broke
inline constexpr Tag links{22};       ///< by which an allreduce measures what lies between nodes
inline constexpr Tag server_request{24};  ///< small: what a node asks of a parameter server
inline constexpr Tag server_reply{25};    ///< small: what it answers
inline constexpr Tag server_push{26};     ///< values of a push
inline constexpr Tag server_values{27};   ///< values of a pull; the other way those of an upload
inline constexpr Tag server_buffers{28};  ///< both ways
inline constexpr Tag server_state{29};    ///< the state of a shard, to shard 0
inline constexpr Tag snapshot{32};        ///< snapshots of the model, rank 0 to the evaluator
inline constexpr Tag snapshot_credit{33};
inline constexpr Tag worker_states{34};  ///< for a checkpoint, to worker 0; of one, from it

/// A second conversation of the same kind between the same nodes.
inline constexpr Tag beside(Tag tag) {
  return {tag.value + 128};
}

inline constexpr Tag of_generation(Tag tag, std::uint32_t generation) {
  return {tag.value + 256 * generation};
}

}  // namespace syncopate::tags
