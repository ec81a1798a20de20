#include "job/host/join.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "job/host/coordinate.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/run_claim.hpp"
#include "membership/enquiry.hpp"
#include "spec/config_file.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// After this time the process logs that the coordinator does not listen yet.
constexpr Milliseconds time_to_notice{1000};

/// Transport that a joiner tries first; it uses sockets if the coordinator has no shared memory.
constexpr std::string_view first_choice = "shm";

wire::Enquire enquiry_of(const JoinRequest& request) {
  wire::Enquire enquiry;
  enquiry.set_role(join_message(request.role, Rank{0}).role());
  if (request.index) {
    enquiry.set_index(*request.index);
  }
  enquiry.set_host(host_name());
  enquiry.set_pid(process_id());
  return enquiry;
}

/// Makes the run's folders: they do not exist yet on a machine that does not share the
/// coordinator's disk.
void make_folders(const RunFolder& folder) {
  for (const auto& path : {folder.checkpoints(), folder.worker_log(Rank{0}).parent_path()}) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) {
      throw DataError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
    }
  }
}

std::unique_ptr<HostSite> site_of(const wire::JobDescription& description,
                                  const JoinRequest& request, const MakeSite& make_site) {
  const std::string whose = fmt::format("the job at {}", request.address);
  const TrainConfig job = parse_config(description.config(), whose);
  check_described(job, whose);
  TrainConfig config = config_of_joiner(job, request.given, whose);
  config.run_dir = request.given.contains("run-dir")
                       ? std::filesystem::absolute(config.run_dir)
                       : own_run_dir(job, request, Rank{description.index()});
  const auto checkpoint = description.checkpoint().empty()
                              ? std::nullopt
                              : std::optional<std::filesystem::path>(description.checkpoint());
  return make_site(config, checkpoint);
}

/// Errors: ProtocolError if the job has no member with this index.
void check_index(const HostSite& site, Role role, Rank index) {
  const std::uint32_t count = member_role(role).count(site.plan().membership());
  if (index.value >= count) {
    throw ProtocolError(fmt::format("the coordinator calls this node {}, but the job has {}",
                                    name_of(role, index), count));
  }
}

}  // namespace

std::unique_ptr<Transport> reach_coordinator(const JoinRequest& request) {
  const auto limit = std::chrono::ceil<Milliseconds>(request.gather_limit);
  TransportOptions options{.token = request.token,
                           .coordinator = request.address,
                           .address = {},
                           .interface = request.place.interface,
                           .ports = request.place.ports,
                           .timeout = limit,
                           .encrypted = request.encrypted};
  if (limit > time_to_notice) {
    options.timeout = time_to_notice;
    try {
      return join_over(first_choice, options);
    } catch (const TimedOut&) {
      log::info("waiting for the coordinator at {}", request.address);
      options.timeout = limit - time_to_notice;
    }
  }
  return join_over(first_choice, options);
}

JoinedMember::JoinedMember(std::unique_ptr<Transport> transport, const JoinRequest& request)
    : request_(request),
      world_(std::move(transport)),
      description_(
          enquire(world_.transport(), enquiry_of(request), world_.now() + request.gather_limit)) {}

void JoinedMember::prepare(const MakeSite& make_site) {
  const Rank index{description_.index()};
  try {
    site_ = site_of(description_, request_, make_site);
    check_index(*site_, request_.role, index);
    make_folders(site_->folder());
    member_ = member_role(request_.role).make(*site_, index);
  } catch (const std::exception& error) {
    decline(world_, error);
    throw;
  }
  log::info("{} joins the job at {}: {}", name_of(request_.role, index), request_.address,
            site_->agreement());
  log::info("files of {} go to {}", name_of(request_.role, index), site_->folder().root().string());
}

void JoinedMember::run() {
  member_->run(world_, report_hang);
}

}  // namespace syncopate
