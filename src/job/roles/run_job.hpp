#pragma once

#include <memory>

#include "job/launch/job_request.hpp"
#include "job/launch/supervisor.hpp"
#include "transport/transport.hpp"

namespace syncopate {

// The jobs of the commands. Each function controls its whole process: it forks, handles signals,
// and returns the exit status.

/// `syncopate train`: makes the run folder, starts coordinator, workers, servers and evaluator as
/// processes on this machine, or all of them in one process in virtual time, and shows them until
/// they end. A rank of a launcher starts only its own processes.
///
/// Errors: ConfigError, DataError, before any process starts; TimedOut if rank 0 does not start.
int train_job(const JobRequest& request, const OpenView& open_view);

/// Does the same if a launcher, such as mpirun or srun, has started this process once for each
/// member. Rank 0 also coordinates and tests, owns the run folder, and shows the job; the other
/// ranks get the job from rank 0.
int launched_job(const JobRequest& request, const OpenView& open_view);

/// `syncopate coordinator`: makes the run folder, starts coordinator and evaluator as processes on
/// this machine, waits for workers and servers that are started by hand, and shows the job.
/// Errors: ConfigError, DataError, before any process starts.
int coordinate_job(const CoordinateRequest& request, const OpenView& open_view);

/// `syncopate worker` and `syncopate server`: waits for the coordinator, asks it for the job and
/// for an index, and does the work of the role.
/// Errors: ConfigError or DataError if this node does not fit the job, which both sides report; the
///         error that ended the job.
int join_job(const JoinRequest& request);

/// Does the same over a transport that is already connected to the coordinator.
int join_job_over(std::unique_ptr<Transport> transport, const JoinRequest& request);

}  // namespace syncopate
