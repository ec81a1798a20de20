#pragma once

#include <array>

#include "config/option_values.hpp"

namespace syncopate {

/// How the learning rate moves (`Schedule`).
enum class ScheduleShape { constant, step, cosine };
constexpr auto names_of(ScheduleShape) {
  return std::to_array<Named<ScheduleShape>>({{"constant", ScheduleShape::constant},
                                              {"step", ScheduleShape::step},
                                              {"cosine", ScheduleShape::cosine}});
}

/// The first parameters.
enum class Init {
  broadcast,  ///< all replicas begin as rank 0's
  independent,  ///< each draws its own, and all take the sum over √P, whose variance is that of one draw
};
constexpr auto names_of(Init) {
  return std::to_array<Named<Init>>(
      {{"broadcast", Init::broadcast}, {"independent", Init::independent}});
}

/// What carries messages between nodes.
enum class TransportKind {
  automatic,
#define TRANSPORT(name) name,
#include "transport/transports.inc"
#undef TRANSPORT
};
constexpr auto names_of(TransportKind) {
  return std::to_array<Named<TransportKind>>({
      {"auto", TransportKind::automatic},
#define TRANSPORT(name) {#name, TransportKind::name},
#include "transport/transports.inc"
#undef TRANSPORT
  });
}

/// Where the shards of a parameter server run.
enum class ServerProcess {
  own,     ///< each in a process of its own
  shared,  ///< in the coordinator's
};
constexpr auto names_of(ServerProcess) {
  return std::to_array<Named<ServerProcess>>(
      {{"own", ServerProcess::own}, {"shared", ServerProcess::shared}});
}

/// With which of BatchNorm's statistics a model is evaluated.
enum class BatchNormStatistics {
  running,     ///< as saved
  recomputed,  ///< over training samples
};
constexpr auto names_of(BatchNormStatistics) {
  return std::to_array<Named<BatchNormStatistics>>(
      {{"running", BatchNormStatistics::running}, {"recomputed", BatchNormStatistics::recomputed}});
}

/// What follows from a gradient that is not finite.
enum class NanPolicy {
  stop,  ///< the end of the job
  skip,  ///< its batch is left out
};
constexpr auto names_of(NanPolicy) {
  return std::to_array<Named<NanPolicy>>({{"stop", NanPolicy::stop}, {"skip", NanPolicy::skip}});
}

}  // namespace syncopate
