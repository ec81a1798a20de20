#pragma once

#include <vector>

#include "base/ids.hpp"

namespace syncopate::sim {

/// The element of a node, made as a copy of `fresh` when it is first asked for.
template <class Value>
Value& at_node(std::vector<Value>& values, NodeId node, const Value& fresh) {
  if (values.size() <= node.value) {
    values.resize(node.value + 1, fresh);
  }
  return values[node.value];
}

}  // namespace syncopate::sim
