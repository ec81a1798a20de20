#include "scheme/server_scheme.hpp"

namespace syncopate {

/// Asynchronous SGD with a parameter server: `PushPull`; the server applies and answers each push
/// at once.
const SchemeSpec& asgd_scheme() {
  static const SchemeSpec spec{.name = "asgd",
                               .formula = "push g_i, which the server applies at once, and pull w",
                               .source = "Dean et al. 2012",
                               .colour = "#009E73",
                               .traits = {.topology = Topology::server,
                                          .sync_mode = SyncMode::asynchronous,
                                          .pull = Pull::each_step},
                               .adapt = count_asynchronous_updates,
                               .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
