#pragma once

namespace syncopate::tcp {

/// The networks that nodes may be on. Streams leave the machine only encrypted, by a key that all
/// nodes have, or if the user declares the network trusted.
enum class Network { loopback, encrypted, trusted };

}  // namespace syncopate::tcp
