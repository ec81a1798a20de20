#include "job/roles/train_here.hpp"

#include <iterator>
#include <utility>

#include "base/random.hpp"
#include "job/roles/processes.hpp"
#include "job/roles/train_in_virtual_time.hpp"
#include "job/roles/train_launched.hpp"

namespace syncopate::cli {
namespace {

void append(std::vector<Child>& all, std::vector<Child> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<Child> processes_of(const Job& job, Descriptor events, Duration gather_limit) {
  std::vector<Child> processes;
  if (job.config().virtual_time) {
    processes.push_back(simulation_process(job, std::move(events)));
    return processes;
  }
  Listener listener = listen_on_loopback();
  const Hub hub{.address = listener.address,
                .token = unguessable_token(),
                .transport = job.config().transport};
  processes.push_back(coordinator_process(
      job, std::move(listener), std::move(events),
      {.hub = hub, .gather_limit = gather_limit, .residents = servers_within(job)}));
  append(processes, server_processes(job, hub));
  append(processes, worker_processes(job, hub));
  processes.push_back(evaluator_process(job, hub));
  return processes;
}

}  // namespace

int train_here(const TrainCommand& wanted) {
  if (wanted.launch) {
    return train_launched(wanted);
  }
  RunClaim claim(wanted);
  const TrainCommand& command = claim.command();
  Job job(command.config, checkpoint_of(command));
  job.share_memory();
  Pipe events = make_pipe();
  return run_claimed(claim,
                     {.children = processes_of(job, std::move(events.write), command.gather_limit),
                      .events = std::move(events.read)});
}

}  // namespace syncopate::cli
