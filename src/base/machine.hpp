#pragma once

#include <string>

namespace syncopate {

/// An identity of the host for sharing memory: the same for two processes that see each other's
/// process numbers and the same network. It combines the running kernel with its namespaces of
/// processes and of the network, so that isolated containers count as hosts of their own.
std::string machine_identity();

}  // namespace syncopate
