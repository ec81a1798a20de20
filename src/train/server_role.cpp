#include "train/server_role.hpp"

#include "base/errors.hpp"

namespace syncopate {

void run_server(World& /*world*/, MemberLink& link, const ServerOptions& /*options*/) {
  link.join();
  throw InternalError("no scheme of this build has a server");
}

}  // namespace syncopate
