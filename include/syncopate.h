/* Syncopate's interface for C and every language that can call C. A program joins a job as one of its workers and
 * trains in its own loop.
 *
 * syncopate/job.hpp is the same interface for C++, and syncopate/torch.hpp for modules of libtorch.
 *
 * Errors:  functions return SYNCOPATE_OK, or a status whose message syncopate_last_error returns. The object that a
 *          failed function would have made is then NULL. For a NULL handle, functions that return a value return 0 or
 *          NULL, and syncopate_work_source returns SYNCOPATE_ANY; they also leave a message.
 * Threads: a job, and every object made from it, is used by one thread at a time; a second thread gets
 *          SYNCOPATE_CONFIG_ERROR. So does a forked process; in it the functions that free an object have no effect. A
 *          group may be used by a thread of its own, and syncopate_work_* by any thread.
 * Library: it forks no process, installs no signal handler, writes nothing to the terminal, and never ends the process.
 * Structs: every struct begins with `size`, which the caller sets to the sizeof of the struct it was compiled with.
 *          Later versions add members at the end, which are zero for older callers.
 */
#ifndef SYNCOPATE_H
#define SYNCOPATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SYNCOPATE_API __attribute__((visibility("default")))
#else
#define SYNCOPATE_API
#endif

/* ---- Errors and log lines ---- */

/* Result of a call. docs/reference/errors.md lists the causes of each status. */
typedef enum syncopate_status {
  SYNCOPATE_OK = 0,             /* the call succeeded */
  SYNCOPATE_ERROR = 1,          /* the program left its loop with an error, or a status of a later version */
  SYNCOPATE_CONFIG_ERROR = 2,   /* an invalid or contradictory option, argument or order of calls */
  SYNCOPATE_DATA_ERROR = 3,     /* a file or memory is missing, damaged, or cannot be written */
  SYNCOPATE_PEER_LOST = 4,      /* another process of the job has died, or the connection to it is broken */
  SYNCOPATE_TIMED_OUT = 5,      /* a time limit has passed; the message names the missing worker */
  SYNCOPATE_NOT_FINITE = 6,     /* a gradient is not finite, and the job is configured to stop in this case */
  SYNCOPATE_PROTOCOL_ERROR = 7, /* another process uses another protocol version, or sent damaged bytes */
  SYNCOPATE_CANCELLED = 8,      /* the user has ended the job or interrupted the call, or the job ended elsewhere */
  SYNCOPATE_INTERNAL_ERROR = 9  /* a bug of Syncopate: please report it */
} syncopate_status;

/* The message of this thread's last failed call: one line, for the user. Valid until the thread's next call. */
SYNCOPATE_API const char *syncopate_last_error(void);

/* The version of the loaded library, such as "1.2.3". */
SYNCOPATE_API const char *syncopate_version(void);

/* Severity of a log line. */
typedef enum syncopate_log_level {
  SYNCOPATE_LOG_DEBUG = 0,
  SYNCOPATE_LOG_INFO = 1,
  SYNCOPATE_LOG_WARNING = 2
} syncopate_log_level;

/* Receives the lines that the command line would write to standard error, without line ends. The library calls it from
 * any thread, one call at a time. It must not call this library. */
typedef void (*syncopate_log_function)(void *user, syncopate_log_level level, const char *line);

/* Passes every later line of level `least` or above to `log`; NULL discards all lines. Before the first call, warnings
 * go to standard error. */
SYNCOPATE_API void syncopate_set_log(syncopate_log_function log, void *user, syncopate_log_level least);

/* ---- Interrupting a wait ---- */

/* Returns a value other than 0 to interrupt the current wait. It must not call this library. */
typedef int (*syncopate_interruption_function)(void *user);

/* Makes each later call of this thread that waits for other workers call `requested` repeatedly, in this thread. An
 * interrupted call returns SYNCOPATE_CANCELLED. If it is a call of a training, it ends the job for all workers. If it
 * is a collective, or opens a group, this worker can no longer use the group; the others wait in it until their time
 * limit, or until this worker leaves the job. An operation whose syncopate_work_wait is interrupted continues. NULL
 * removes the function. */
SYNCOPATE_API void syncopate_set_interruption(syncopate_interruption_function requested, void *user);

/* ---- Joining ---- */

/* The membership of this process in a job as a worker, from syncopate_join to syncopate_leave. */
typedef struct syncopate_job syncopate_job;

/* An option of `syncopate run`, given by its name: {"local-steps", "4"}. */
typedef struct syncopate_option {
  const char *name;
  const char *value;
} syncopate_option;

/* Data by which a process finds the other processes of its job, if no launcher has set environment variables. */
typedef struct syncopate_entry {
  size_t size;
  const char *coordinator; /* HOST:PORT */
  const char *key;         /* the secret of the job */
  uint32_t rank;
  uint32_t worker_count;
  uint32_t local_rank; /* among the processes of this host */
  const char *address; /* HOST:PORT at which this process listens; port 0: any free port. NULL: 127.0.0.1:0 */
  int unencrypted;     /* not 0: the network is trusted, so `address` may be beyond loopback */
  const char *key_file; /* a file with a key that all hosts have: it encrypts the job, in place of `key`. NULL: none */
} syncopate_entry;

/* Settings with which a program joins. The command line of `syncopate run` may give them instead; both may give the
 * same ones, but must not contradict each other. */
typedef struct syncopate_join_options {
  size_t size;
  const char *scheme; /* NULL: that of the command line, else "ssgd" */
  const syncopate_option *options;
  size_t option_count;
  const syncopate_entry *entry; /* NULL: from the environment; if that has none, a job of only this process */
  double wait_seconds; /* longest wait for other workers in collectives of all workers; 0: half an hour */
} syncopate_join_options;

/* Joins the job for which `syncopate run`, mpirun, srun or torchrun has started this process, and waits until all
 * programs of the job have joined. Without a launcher the process is a job of one worker, which opens no connection and
 * starts no thread. From then on the process keeps up to 1 GiB of memory that it frees, unless the environment has
 * settings of malloc. `options` may be NULL. */
SYNCOPATE_API syncopate_status syncopate_join(const syncopate_join_options *options, syncopate_job **job);

/* Leaves the job and frees it; NULL has no effect. The program frees every object made from the job before, except work
 * and groups: operations that they still run end with an error. If another launcher than `syncopate run` has started
 * the job, worker 0 waits here until the other workers have left. */
SYNCOPATE_API void syncopate_leave(syncopate_job *job);

/* The rank of this worker, from 0 on. */
SYNCOPATE_API uint32_t syncopate_rank(const syncopate_job *job);
/* The number of workers of the job. */
SYNCOPATE_API uint32_t syncopate_worker_count(const syncopate_job *job);
/* The rank of this worker among the workers of its host. */
SYNCOPATE_API uint32_t syncopate_local_rank(const syncopate_job *job);
/* A number that workers have in common if they are on one host. Errors: CONFIG for a rank that no worker has. */
SYNCOPATE_API uint32_t syncopate_host_of(const syncopate_job *job, uint32_t rank);

/* 1 if no launcher has started this process and it is a job of its own, else 0. */
SYNCOPATE_API int syncopate_is_alone(const syncopate_job *job);

/* A coordinator in a thread of this process, for workers that no launcher of Syncopate has started. The program sends
 * its address and key to the workers by its own means; each of them, including this process, joins with an entry. */
typedef struct syncopate_host syncopate_host;

/* The address of a coordinator. */
typedef struct syncopate_host_options {
  size_t size;
  const char *address; /* HOST:PORT at which it listens; port 0: any free port. NULL: 127.0.0.1:0 */
  int unencrypted;     /* not 0: the network is trusted, so `address` may be beyond loopback */
  const char *key_file; /* as in syncopate_entry: `address` may be beyond loopback, and streams are encrypted. NULL: none */
} syncopate_host_options;

/* Starts a coordinator for `worker_count` workers. `options` may be NULL. */
SYNCOPATE_API syncopate_status syncopate_host_open(uint32_t worker_count, const syncopate_host_options *options,
                                                   syncopate_host **host);
/* The address of the coordinator, for the entries of the workers. Valid as long as the host. */
SYNCOPATE_API const char *syncopate_host_coordinator(const syncopate_host *host);
/* The secret of the job, for the entries of the workers. Valid as long as the host. */
SYNCOPATE_API const char *syncopate_host_key(const syncopate_host *host);
/* Waits until every worker has left, then ends the coordinator. NULL has no effect. */
SYNCOPATE_API void syncopate_host_close(syncopate_host *host);

/* ---- Groups ---- */

/* Some or all workers of a job, which call collectives together.
 *
 * Every member calls the collectives of one group in the same order, with the same types and lengths; members whose
 * calls differ get an error that names both. The collectives of a group run one after the other. Those of several
 * groups run concurrently, and so do sends and receives between workers.
 *
 * Threads: one collective of a group at a time; other threads may use other groups or the job. Any thread may send and
 *          receive. */
typedef struct syncopate_group syncopate_group;

/* The group of all workers; ranks in the group equal those in the job. The job owns it: do not close it. */
SYNCOPATE_API syncopate_group *syncopate_everyone(syncopate_job *job);

/* The members of a group, and the time limit of its waits. */
typedef struct syncopate_group_options {
  size_t size;
  const uint32_t *ranks; /* ranks of the members in the job, the same on each member; NULL: all workers */
  size_t rank_count;
  double wait_seconds; /* longest wait of a member for others; 0: half an hour */
} syncopate_group_options;

/* Opens a group, in which member i has rank i. All of its members call it. If two groups have two members in common,
 * these open the groups in the same order. */
SYNCOPATE_API syncopate_status syncopate_group_open(syncopate_job *job, const syncopate_group_options *options,
                                                    syncopate_group **group);
/* Waits for the group's running operations and frees it. NULL has no effect. Operations that were running when the
 * program left the job have ended with an error. */
SYNCOPATE_API void syncopate_group_close(syncopate_group *group);

/* The rank of this worker in the group, from 0 on. */
SYNCOPATE_API uint32_t syncopate_group_rank(const syncopate_group *group);
/* The number of members. */
SYNCOPATE_API uint32_t syncopate_group_size(const syncopate_group *group);

/* ---- Collectives ---- */

/* The type of the values of a reduction. */
typedef enum syncopate_type {
  SYNCOPATE_FLOAT32 = 0,
  SYNCOPATE_FLOAT64 = 1,
  SYNCOPATE_INT32 = 2,
  SYNCOPATE_INT64 = 3,
  SYNCOPATE_BFLOAT16 = 4,
  SYNCOPATE_FLOAT16 = 5,
  SYNCOPATE_INT8 = 6,
  SYNCOPATE_UINT8 = 7
} syncopate_type;

/* Combines the values that workers have at the same index. Integers wrap around; bfloat16 and float16 values are
 * combined in float32. The bitwise operations are for integers. Errors: CONFIG for bitwise operations on floating-point
 * values. */
typedef enum syncopate_operation {
  SYNCOPATE_SUM = 0,
  SYNCOPATE_PRODUCT = 1,
  SYNCOPATE_MIN = 2,
  SYNCOPATE_MAX = 3,
  SYNCOPATE_BIT_AND = 4,
  SYNCOPATE_BIT_OR = 5,
  SYNCOPATE_BIT_XOR = 6
} syncopate_operation;

/* A collective, a send or a receive that runs in the background. */
typedef struct syncopate_work syncopate_work;

/* Describes the bytes of the group's next collective, such as "float32", or the use of a reduction, such as "the mean"
 * if the program computes it from the sum; at most 63 bytes. If the descriptions of members differ, all of them get
 * SYNCOPATE_CONFIG_ERROR, in that collective or a later one. Without a description nothing is compared. */
SYNCOPATE_API syncopate_status syncopate_next_type(syncopate_group *group, const char *type);

/* Each collective takes `work`. If it is NULL, the call returns once the collective has ended. Otherwise the call
 * returns at once and sets *work to the running collective, to be freed by syncopate_work_free; do not change memory
 * that the collective reads or writes until it has ended. Workers are identified by their ranks in the group. */

/* Replaces `count` values by their reduction over all workers. The bits are the same on each worker. */
SYNCOPATE_API syncopate_status syncopate_allreduce(syncopate_group *group, void *values, size_t count,
                                                   syncopate_type type, syncopate_operation operation,
                                                   syncopate_work **work);
/* As syncopate_allreduce, but only on worker `root`; the values of the other workers do not change. */
SYNCOPATE_API syncopate_status syncopate_reduce(syncopate_group *group, void *values, size_t count, syncopate_type type,
                                                syncopate_operation operation, uint32_t root, syncopate_work **work);
/* On worker r, sets `mine`, `count` values, to block r of the reduction of `values`, which has one block of `count`
 * values per worker. */
SYNCOPATE_API syncopate_status syncopate_reduce_scatter(syncopate_group *group, const void *values, void *mine,
                                                        size_t count, syncopate_type type,
                                                        syncopate_operation operation, syncopate_work **work);
/* Replaces `bytes` bytes by those of worker `root`. */
SYNCOPATE_API syncopate_status syncopate_broadcast(syncopate_group *group, void *values, size_t bytes, uint32_t root,
                                                   syncopate_work **work);
/* Sets block r of `all`, `bytes` bytes, to the `mine` of worker r. */
SYNCOPATE_API syncopate_status syncopate_allgather(syncopate_group *group, const void *mine, size_t bytes, void *all,
                                                   syncopate_work **work);
/* As syncopate_allgather, but only on worker `root`; `all` of the other workers may be NULL. */
SYNCOPATE_API syncopate_status syncopate_gather(syncopate_group *group, const void *mine, size_t bytes, void *all,
                                                uint32_t root, syncopate_work **work);
/* On worker r, sets `mine`, `bytes` bytes, to block r of worker `root`'s `all`; `all` of the others may be NULL. */
SYNCOPATE_API syncopate_status syncopate_scatter(syncopate_group *group, const void *all, size_t bytes, void *mine,
                                                 uint32_t root, syncopate_work **work);
/* Sends a block to each worker and receives one from each. `to` has the blocks one after the other, to_bytes[r] bytes
 * for worker r; `from` has room for from_bytes[r] bytes of worker r, the number that worker r sends. */
SYNCOPATE_API syncopate_status syncopate_alltoall(syncopate_group *group, const void *to, const size_t *to_bytes,
                                                  void *from, const size_t *from_bytes, syncopate_work **work);
/* Ends once every worker has called it. */
SYNCOPATE_API syncopate_status syncopate_barrier(syncopate_group *group, syncopate_work **work);

/* Stands for any worker as the sender of a receive. */
#define SYNCOPATE_ANY UINT32_MAX

/* Sends to one other worker, which receives the same number of bytes with the same tag, a number below 4096. Messages
 * with the same tag arrive in the order in which they were sent. The first 4,096 groups of a job support it. */
SYNCOPATE_API syncopate_status syncopate_send(syncopate_group *group, const void *values, size_t bytes, uint32_t to,
                                              uint32_t tag, syncopate_work **work);
/* Receives a message that another worker sends with the same tag and the same number of bytes.
 * `from`: a worker, or SYNCOPATE_ANY. */
SYNCOPATE_API syncopate_status syncopate_receive(syncopate_group *group, void *values, size_t bytes, uint32_t from,
                                                 uint32_t tag, syncopate_work **work);

/* 1 once the operation has ended, else 0. */
SYNCOPATE_API int syncopate_work_is_done(const syncopate_work *work);
/* Returns once the operation has ended, with its status, in every call. SYNCOPATE_CANCELLED: the program left the job
 * before the operation began. Only one thread waits for a receive. */
SYNCOPATE_API syncopate_status syncopate_work_wait(syncopate_work *work);
/* As syncopate_work_wait, but waits at most `seconds`. *ended is 1 once the operation has ended, also with an error,
 * else 0. */
SYNCOPATE_API syncopate_status syncopate_work_wait_for(syncopate_work *work, double seconds, int *ended);
/* The sender of a receive that has ended; else SYNCOPATE_ANY. */
SYNCOPATE_API uint32_t syncopate_work_source(const syncopate_work *work);
/* Frees the handle. A running collective or send continues; a running receive ends. NULL has no effect. */
SYNCOPATE_API void syncopate_work_free(syncopate_work *work);

/* ---- Samples ---- */

/* The order in which one worker trains on the samples of a dataset: in each epoch all workers together take every
 * sample once. Option "data-order" selects it. "fixed": each worker's part follows from the job's seed. "leased":
 * faster workers take more samples. "auto": leased if the workers of the scheme take different numbers of steps. */
typedef struct syncopate_share syncopate_share;

/* Opens this worker's share of a dataset of `samples` samples, in steps of `batch_size` samples of all workers
 * together. Training counts epochs and weights steps by these sizes. */
SYNCOPATE_API syncopate_status syncopate_share_open(syncopate_job *job, uint64_t samples, uint64_t batch_size,
                                                    syncopate_share **share);
/* As syncopate_share_open, but the workers divide the `global_batch` samples of a step, or of a round of esync, by the
 * measured speeds of their devices: the share has as many samples in each step as the training wants. Schemes other than
 * ssgd and esync divide it once: by the speeds in a cluster file, or equally. Errors: CONFIG
 * for a batch of fewer than two samples for each worker or of more than the dataset has, for a second such share, and
 * under esync if data-order is fixed. */
SYNCOPATE_API syncopate_status syncopate_share_open_by_speed(syncopate_job *job, uint64_t samples, uint64_t global_batch,
                                                             syncopate_share **share);
/* Frees the share. NULL has no effect. */
SYNCOPATE_API void syncopate_share_close(syncopate_share *share);

/* Samples in the next step of this worker; without syncopate_share_open_by_speed, in every step. */
SYNCOPATE_API uint64_t syncopate_share_step_size(const syncopate_share *share);
/* Returns the indices of the next step, in order, valid until the next call with this share. *count is 0 at the end of
 * an epoch; the call after that begins the next epoch. */
SYNCOPATE_API syncopate_status syncopate_share_next(syncopate_share *share, const uint64_t **indices, size_t *count);
/* Begins the next epoch. Has no effect if the current epoch has not begun, or if syncopate_share_resume was just
 * called. */
SYNCOPATE_API syncopate_status syncopate_share_next_epoch(syncopate_share *share);
/* Continues after the first `step` steps of `epoch`, which an earlier job has taken. If samples are leased, these steps
 * are not known, and the epoch restarts. Errors: CONFIG for more steps than this worker has in the epoch, and for an
 * epoch above 2^32 - 1. */
SYNCOPATE_API syncopate_status syncopate_share_resume(syncopate_share *share, uint64_t epoch, uint64_t step);
/* The steps of this worker in the current epoch, and their samples: 0 if steps are divided by speed. Either pointer may
 * be NULL. Errors: CONFIG if samples are leased, because the numbers then also depend on the other workers. */
SYNCOPATE_API syncopate_status syncopate_share_length(syncopate_share *share, uint64_t *steps, uint64_t *samples);
/* Completed epochs so far. */
SYNCOPATE_API uint64_t syncopate_share_epoch(const syncopate_share *share);
/* Steps so far in the current epoch. */
SYNCOPATE_API uint64_t syncopate_share_step(const syncopate_share *share);

/* ---- Training ---- */

/* The flat float32 vectors of a replica. */
typedef enum syncopate_vector {
  SYNCOPATE_PARAMETERS = 0,
  SYNCOPATE_GRADIENTS = 1, /* the mean gradient of a step, with the length and the order of the parameters */
  SYNCOPATE_BUFFERS = 2    /* floating-point state that is not trained, such as BatchNorm's running statistics */
} syncopate_vector;

/* Memory that all workers of this host can read, given by the library to a replica. */
typedef struct syncopate_memory syncopate_memory;
/* Releases the memory; the program uses none of its values any more. From any thread, also after the job has ended. */
SYNCOPATE_API void syncopate_memory_release(syncopate_memory *memory);

/* A sum over workers that the program computes. */
typedef struct syncopate_sum syncopate_sum;
/* Ends a sum, from any thread. `error`: NULL if the sums have replaced its values; else the reason of its failure, with
 * which training ends. The program does not use the values or `sum` any more. NULL has no effect. */
SYNCOPATE_API void syncopate_sum_end(syncopate_sum *sum, const char *error);

/* The program's own model and optimizer, which the scheme trains.
 *
 * Callbacks run while the program is inside syncopate_training_start, `_begin_pass`, `_step`, `_take_replica`, `_finish`
 * or `_close`, on the thread of that call. They may call only syncopate_memory_release and syncopate_training_samples. A callback that
 * can fail returns NULL, or the reason of its failure, which stays valid until the next callback; training then ends with that
 * message. */
typedef struct syncopate_replica {
  size_t size;
  void *user; /* first argument of every callback */
  uint64_t parameter_count;
  uint64_t buffer_count;
  /* Sets *values to the host memory of a vector, with its current values. Changes to it take effect with `store`. */
  const char *(*view)(void *user, syncopate_vector which, float **values);
  /* Copies the host memory of a vector back to the model. NULL: the model itself is in that memory. */
  const char *(*store)(void *user, syncopate_vector which);
  /* Moves a vector to `values`, to which the library has copied it, so that workers of one host reduce it in place.
   * NULL: the vector stays where it is. The program calls syncopate_memory_release once it no longer uses `memory`. */
  const char *(*move)(void *user, syncopate_vector which, float *values, syncopate_memory *memory);
  /* Takes one step of the program's optimizer on its parameters, at its learning rate times `rate_factor`. */
  const char *(*take_step)(void *user, double rate_factor);
  /* Number of the model's tensors, the same on all workers, if a step may leave some of them without a gradient
   * (syncopate_training_has_gradients); 0: each tensor has one in every step. */
  uint64_t tensor_count;
  /* Called before `take_step` if the set of tensors with a gradient differs from that of the program's own step. The
   * optimizer changes tensor i only if tensors[i] is 1, until the program's next step. */
  const char *(*use_gradients)(void *user, const uint8_t *tensors);
  /* NULL, or where the reason of a failure is: the results of the callbacks then have no meaning. For languages in which
   * a callback can end without a result. */
  const char *const *reason;
  /* For option aggregate torch: begins to replace `count` values by their sums over `sum_members` workers, and returns.
   * These are the first worker of each host, or, if all are on one host without shared memory, all workers. Each of them
   * begins the same sums in the same order, one after the other. The values and `sum` are valid until syncopate_sum_end,
   * which the program calls for each sum, even after a training that has failed is closed. Called from any thread.
   * NULL: the program has no engine for sums. */
  void (*begin_sum)(void *user, float *values, uint64_t count, syncopate_sum *sum);
  uint32_t sum_members;
} syncopate_replica;

/* Receives an event: the values that this worker logs for a synchronization round, as a JSON object in one line.
 * docs/reference/records.md describes the fields (workers/N.jsonl). Called under the rules of a replica's callbacks. */
typedef void (*syncopate_round_function)(void *user, const char *json);

/* Settings of a replica's training, including its scheme. */
typedef struct syncopate_training_options {
  size_t size;
  const char *scheme; /* as in syncopate_join_options */
  const syncopate_option *options;
  size_t option_count;
  uint32_t batch_size; /* samples in a usual step, the same on all workers; 0: that of syncopate_share_open */
  double learning_rate;
  /* Options of `syncopate train` that describe the optimizer: {"optimizer", "momentum"}, {"momentum", "0.9"}, and also
   * weight-decay, beta1, beta2, epsilon and alpha; others are errors. A parameter server that keeps the model applies
   * this rule. */
  const syncopate_option *rule;
  size_t rule_count;
  const char *has_no_rule; /* the reason why a server cannot apply the rule; NULL: it can */
  syncopate_round_function on_round; /* may be NULL; a job of only one process has no rounds */
  void *on_round_user;
} syncopate_training_options;

/* The training of one replica in the program's own loop, from syncopate_training_start to syncopate_training_close. */
typedef struct syncopate_training syncopate_training;

/* The scheme of a training. Flags are 0 or 1. */
typedef struct syncopate_scheme_traits {
  size_t size;
  const char *scheme;   /* its name */
  const char *options;  /* all given options, including the scheme, as a JSON object: {"seed": "2"} */
  int in_rounds;        /* workers end each synchronization round together */
  int in_lockstep;      /* workers take the same number of steps, except at the end of an epoch */
  int local_steps;      /* each worker takes steps of its own optimizer between two rounds */
  int takes_means;      /* a round only replaces gradients, or parameters, by their mean over the workers */
  int waits_for_steps;  /* without rounds: a step may wait until other workers have taken theirs */
  int pulls_each_step;  /* each step fetches the parameters that a server or shared memory keeps */
  int pulls_some_steps; /* a worker fetches them after several of its own steps */
} syncopate_scheme_traits;

/* Fills `traits`, whose size the caller has set, for a training with this scheme and these options, combined with those
 * of syncopate_join and of the command line. `scheme` and `options` may be NULL. The strings in `traits` stay valid
 * until the next call for this job. Errors: SYNCOPATE_CONFIG_ERROR. */
SYNCOPATE_API syncopate_status syncopate_describe_scheme(syncopate_job *job, const char *scheme,
                                                         const syncopate_option *options, size_t option_count,
                                                         syncopate_scheme_traits *traits);

/* Checks that a training may start; call it before changing the model for one. Errors: SYNCOPATE_CONFIG_ERROR if the
 * job has a training already. */
SYNCOPATE_API syncopate_status syncopate_training_may_start(const syncopate_job *job);

/* Waits until every worker has started, and gives all replicas the parameters of worker 0. Only once in a job of more
 * than one process. Objects that the callbacks use must outlive the training; the structs need not. */
SYNCOPATE_API syncopate_status syncopate_training_start(syncopate_job *job, const syncopate_replica *replica,
                                                        const syncopate_training_options *options,
                                                        syncopate_training **training);

/* 1 if a parameter server takes the optimizer's steps, else 0. */
SYNCOPATE_API int syncopate_training_server_steps(const syncopate_training *training);
/* 1 if a parameter server takes steps of the whole model by a rule that changes tensors whose gradient is zero, such as
 * one with a momentum or a weight decay: a step then needs a gradient of each tensor. Else 0. */
SYNCOPATE_API int syncopate_training_server_moves_all(const syncopate_training *training);
/* 1 if a step takes the mean gradient of all workers, which take all steps together, else 0. */
SYNCOPATE_API int syncopate_training_shares_gradients(const syncopate_training *training);
/* 1 if gradients are sent during the backward pass as soon as the program reports them: scheme ssgd with option overlap
 * on. Else 0. */
SYNCOPATE_API int syncopate_training_overlaps(const syncopate_training *training);
/* Samples in a usual step. */
SYNCOPATE_API uint32_t syncopate_training_batch_size(const syncopate_training *training);
/* Samples of all workers on which the parameters have been trained, as known to this worker; during `take_step`, those
 * before that step. A rate that follows it is the same on all workers that share gradients, even if a worker takes the
 * steps of several rounds at once, as under nbssgd. */
SYNCOPATE_API uint64_t syncopate_training_samples(const syncopate_training *training);
/* Samples that the scheme wants in the next step; those of a usual step, unless it follows the speeds of the devices
 * (syncopate_share_open_by_speed). For a program that reads data of its own. */
SYNCOPATE_API uint32_t syncopate_training_next_samples(const syncopate_training *training);

/* Begins the backward pass of a step of `samples` samples, whose gradients the program will report. Returns once the
 * library accepts them. If syncopate_training_overlaps is 0, this call and the reports have no effect. Errors: those of
 * syncopate_training_step; SYNCOPATE_CONFIG_ERROR for a second pass before a step. */
SYNCOPATE_API syncopate_status syncopate_training_begin_pass(syncopate_training *training, uint32_t samples);
/* Reports that `count` values of SYNCOPATE_GRADIENTS from `first` on are final and in host memory: the program neither
 * reads nor writes them until its step has returned. Values without a report are final at the step.
 * Errors: SYNCOPATE_CONFIG_ERROR for a value that was reported before, and before a pass has begun. */
SYNCOPATE_API syncopate_status syncopate_training_gradients_ready(syncopate_training *training, uint64_t first,
                                                                  uint64_t count);

/* Sets the settings of the program's optimizer for later steps: the learning rate of its first group, and a checksum,
 * other than 0, of all settings of all groups. If workers share gradients, as under ssgd, and their settings differ,
 * their next step ends with SYNCOPATE_CONFIG_ERROR, because replicas would drift apart. A program that never calls it
 * must itself keep the settings equal. */
SYNCOPATE_API syncopate_status syncopate_training_use_settings(syncopate_training *training, double learning_rate,
                                                               uint32_t checksum);

/* Sets which tensors have a gradient in later steps: tensor i has one if tensors[i] is 1, for the replica's
 * tensor_count tensors. The other tensors took no part in the backward passes, and their part of SYNCOPATE_GRADIENTS is
 * zero. Before the first call every tensor has a gradient. If workers share gradients, a step does not change a tensor
 * without a gradient on any worker. If only some workers have one, the mean counts that of the others as zero, as in
 * one pass over all samples. */
SYNCOPATE_API syncopate_status syncopate_training_has_gradients(syncopate_training *training, const uint8_t *tensors);

/* Takes a step; SYNCOPATE_GRADIENTS holds the mean gradient of `samples` samples. Returns once the parameters for the
 * next step are in place. Errors: the error that ended the job; SYNCOPATE_CANCELLED once the user has ended it;
 * SYNCOPATE_CONFIG_ERROR if the pass began with another number of samples; SYNCOPATE_NOT_FINITE for a gradient that is
 * not finite, unless option on-nan is skip. In a job of one process this is checked if the replica has no callback
 * `store`. */
SYNCOPATE_API syncopate_status syncopate_training_step(syncopate_training *training, uint32_t samples);
/* As syncopate_training_step, for a job of one process that has checked its gradient itself: `finite` is 0 if a value
 * is not finite. The library reads SYNCOPATE_GRADIENTS only in that case. Errors: also SYNCOPATE_CONFIG_ERROR in a job
 * of several processes. */
SYNCOPATE_API syncopate_status syncopate_training_step_alone(syncopate_training *training, uint32_t samples, int finite);

/* Waits until every worker has called it, even after different numbers of steps, such as before a test. All workers call
 * it between two steps. While it waits, this worker takes part in the rounds of the others without samples. All replicas
 * are equal afterwards, except in `local`, `downpour`, `easgd` and `nbssgd` with `commit` `racy`, where each worker keeps
 * its own. Gradients do not change. `place` is a name for this call, the same on all workers. Errors: those of
 * syncopate_training_step; SYNCOPATE_CONFIG_ERROR if workers pass different names. */
SYNCOPATE_API syncopate_status syncopate_training_align(syncopate_training *training, const char *place);

/* Adopts the replicas' current values. All workers call it after syncopate_training_align, without a step in between,
 * when their programs have given all replicas the same parameters and buffers, such as those of an earlier moment;
 * training continues from them. Optimizers keep their states; a momentum over rounds restarts. Errors: those of
 * syncopate_training_step. */
SYNCOPATE_API syncopate_status syncopate_training_take_replica(syncopate_training *training);

/* Ends this worker's steps and waits for the loops of all workers. The replica then holds the job's model. Errors: the
 * error that ended the job; SYNCOPATE_CONFIG_ERROR on all workers if the model of one differs because its program has
 * changed the parameters outside of the job's steps. */
SYNCOPATE_API syncopate_status syncopate_training_finish(syncopate_training *training);

/* Ends the job for all workers because this program leaves its loop with an error. The others get `reason`. Close the
 * training afterwards. */
SYNCOPATE_API void syncopate_training_abandon(syncopate_training *training, const char *reason);

/* Frees the training, and finishes it first if needed. NULL has no effect. */
SYNCOPATE_API void syncopate_training_close(syncopate_training *training);

#ifdef __cplusplus
}
#endif

#endif
