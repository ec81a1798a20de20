#pragma once

#include <string>

namespace syncopate {

/// The host, as far as it concerns who can share memory with whom: the same for two processes that see
/// each other's process numbers and the same network. It is the running kernel with the namespaces of
/// both, so that containers which are cut off from each other are hosts of their own.
std::string machine_identity();

}  // namespace syncopate
