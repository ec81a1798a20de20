#include "membership/blame.hpp"

#include <algorithm>
#include <iterator>

namespace syncopate {

Decisions blaming(const std::vector<NodeId>& hung, Decisions decisions) {
  for (Decision& decision : decisions) {
    if (auto* const end = std::get_if<EndJob>(&decision)) {
      for (const NodeId node : hung) {
        end->abort.add_hung(node.value);
      }
    } else if (auto* const drop = std::get_if<DropWorker>(&decision)) {
      drop->hangs = std::ranges::find(hung, drop->member.node) != hung.end();
    }
  }
  return decisions;
}

void append(Decisions& to, Decisions more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace syncopate
