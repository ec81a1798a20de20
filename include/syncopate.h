/* Syncopate's interface for programs in C, and in every language that can call C: a program joins a job as one of
 * its workers, and trains by a loop of its own.
 *
 * syncopate/job.hpp has the same for C++, and syncopate/torch.hpp for modules of libtorch.
 *
 * Errors:  functions return SYNCOPATE_OK, or a status whose message syncopate_last_error has. What a function would
 *          have made is then NULL. Those that return a value return 0 or NULL, syncopate_work_source SYNCOPATE_ANY, for
 *          a handle that is NULL, and leave a message, too.
 * Threads: a job, and everything made from it, is used by one thread at a time; a second one gets
 *          SYNCOPATE_CONFIG_ERROR. So does a process that this one has forked, where the functions that free
 *          something do nothing. A group may have a thread of its own, and syncopate_work_* any thread.
 * Library: it forks nothing, installs no signal handler, writes nothing to the terminal, and never ends the process.
 * Structs: every struct begins with `size`, which the caller sets to sizeof of the struct that it was compiled with.
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

/* What a call came to. docs/reference/errors.md says where each of them comes from. */
typedef enum syncopate_status {
  SYNCOPATE_OK = 0,             /* the call has done what it says */
  SYNCOPATE_ERROR = 1,          /* the program left its loop by an error, or a status of a later version */
  SYNCOPATE_CONFIG_ERROR = 2,   /* impossible or contradictory: an option, an argument, an order of calls */
  SYNCOPATE_DATA_ERROR = 3,     /* a file or memory is missing, damaged, or cannot be written */
  SYNCOPATE_PEER_LOST = 4,      /* another process of the job has died, or its connection broke */
  SYNCOPATE_TIMED_OUT = 5,      /* a deadline passed; the message names who was missing */
  SYNCOPATE_NOT_FINITE = 6,     /* a gradient is not a number, and the job was to stop there */
  SYNCOPATE_PROTOCOL_ERROR = 7, /* another process speaks another version, or sent damaged bytes */
  SYNCOPATE_CANCELLED = 8,      /* the user has ended the job or interrupted the call, or the job ended elsewhere */
  SYNCOPATE_INTERNAL_ERROR = 9  /* a bug of Syncopate: please report it */
} syncopate_status;

/* The message of the last call of this thread that failed: one line, for the user. Valid until the thread's next call.
 */
SYNCOPATE_API const char *syncopate_last_error(void);

/* "1.2.3": of the library that is loaded. */
SYNCOPATE_API const char *syncopate_version(void);

/* How much a log line matters. */
typedef enum syncopate_log_level {
  SYNCOPATE_LOG_DEBUG = 0,
  SYNCOPATE_LOG_INFO = 1,
  SYNCOPATE_LOG_WARNING = 2
} syncopate_log_level;

/* Gets the lines that the command line would write to standard error, without their end. From any thread, one at a
 * time; it calls no function of this library. */
typedef void (*syncopate_log_function)(void *user, syncopate_log_level level, const char *line);

/* From now on `log` gets every line of `least` and above; NULL: nobody does. Before the first call warnings go to standard
 * error. */
SYNCOPATE_API void syncopate_set_log(syncopate_log_function log, void *user, syncopate_log_level least);

/* ---- Interrupting a wait ---- */

/* Returns a value other than 0 to end the wait that calls it. It calls no function of this library. */
typedef int (*syncopate_interruption_function)(void *user);

/* From now on each call of this thread that waits for other workers asks `requested` now and then, in this thread.
 * A call that is interrupted returns SYNCOPATE_CANCELLED. One of a training then ends the job for all workers. After one
 * that is a collective itself, or opens a group, this worker cannot use the group, in which the others wait for their
 * limit, or until it leaves the job; an operation whose syncopate_work_wait is interrupted goes on. NULL: nobody
 * is asked, as at the beginning. */
SYNCOPATE_API void syncopate_set_interruption(syncopate_interruption_function requested, void *user);

/* ---- Joining ---- */

/* This process as one of the workers of a job, from syncopate_join to syncopate_leave. */
typedef struct syncopate_job syncopate_job;

/* An option of `syncopate run`, by its name: {"local-steps", "4"}. */
typedef struct syncopate_option {
  const char *name;
  const char *value;
} syncopate_option;

/* How a process finds the others of its job, where no launcher says so by environment variables. */
typedef struct syncopate_entry {
  size_t size;
  const char *coordinator; /* HOST:PORT */
  const char *key;         /* the secret of the job */
  uint32_t rank;
  uint32_t worker_count;
  uint32_t local_rank; /* among the processes of this host */
  const char *address; /* HOST:PORT where this process listens; port 0: a free one. NULL: 127.0.0.1:0 */
  int unencrypted;     /* not 0: `address` may be beyond loopback, because the network is trusted */
} syncopate_entry;

/* What a program says when it joins. The command line of `syncopate run` may say it instead; both may say the same,
 * but not contradict each other. */
typedef struct syncopate_join_options {
  size_t size;
  const char *scheme; /* NULL: that of the command line, else "ssgd" */
  const syncopate_option *options;
  size_t option_count;
  const syncopate_entry *entry; /* NULL: from the environment; where that has none, a job of this process alone */
  double wait_seconds; /* how long a worker waits for others in collectives of all at most; 0: half an hour */
} syncopate_join_options;

/* Joins the job that `syncopate run`, mpirun, srun or torchrun has started this process for, and waits until all of
 * its programs have come. Without a launcher the process is a job of one worker, which opens no connection and starts
 * no thread. Up to 1 GiB of memory that the process frees stays with it from then on, unless the environment has
 * settings of malloc. `options` may be NULL. */
SYNCOPATE_API syncopate_status syncopate_join(const syncopate_join_options *options, syncopate_job **job);

/* Leaves the job and frees it; NULL is fine. Everything made from it has been freed before, work and groups apart: what
 * these have under way ends with an error. Worker 0 of a job that another launcher than `syncopate run` has started
 * waits here until the others have left. */
SYNCOPATE_API void syncopate_leave(syncopate_job *job);

/* The rank of this worker, from 0 on. */
SYNCOPATE_API uint32_t syncopate_rank(const syncopate_job *job);
/* The number of workers of the job. */
SYNCOPATE_API uint32_t syncopate_worker_count(const syncopate_job *job);
/* The rank of this worker among those of its host. */
SYNCOPATE_API uint32_t syncopate_local_rank(const syncopate_job *job);

/* 1 where no launcher has started this process, which is a job by itself, else 0. */
SYNCOPATE_API int syncopate_is_alone(const syncopate_job *job);

/* A coordinator in a thread of this process, for workers that no launcher of Syncopate has started. The program passes
 * its address and its key to them by means of its own, and each of them, this process among them, joins by an entry. */
typedef struct syncopate_host syncopate_host;

/* Where a coordinator listens. */
typedef struct syncopate_host_options {
  size_t size;
  const char *address; /* HOST:PORT where it listens; port 0: a free one. NULL: 127.0.0.1:0 */
  int unencrypted;     /* not 0: `address` may be beyond loopback, because the network is trusted */
} syncopate_host_options;

/* Starts a coordinator for `worker_count` workers. `options` may be NULL. */
SYNCOPATE_API syncopate_status syncopate_host_open(uint32_t worker_count, const syncopate_host_options *options,
                                                   syncopate_host **host);
/* The address of the coordinator, for the entries of the workers. Valid as long as the host. */
SYNCOPATE_API const char *syncopate_host_coordinator(const syncopate_host *host);
/* The secret of the job, for the entries of the workers. Valid as long as the host. */
SYNCOPATE_API const char *syncopate_host_key(const syncopate_host *host);
/* Waits until every worker has left, and ends the coordinator. NULL is fine. */
SYNCOPATE_API void syncopate_host_close(syncopate_host *host);

/* ---- Groups ---- */

/* Some workers of a job, or all of them, who call collectives together.
 *
 * Every member calls the collectives of one group in the same order, with the same types and lengths; members whose
 * calls differ get an error that names both. They are carried out one after the other. Those of several groups go on
 * beside each other, and so does what one worker sends to another.
 *
 * Threads: collectives of one group one at a time, while other threads use other groups, or the job; sends and receives
 * any. */
typedef struct syncopate_group syncopate_group;

/* All workers of the job: ranks in the group are those in the job. Of the job; not to be closed. */
SYNCOPATE_API syncopate_group *syncopate_everyone(syncopate_job *job);

/* The members of a group, and how long its members wait for each other. */
typedef struct syncopate_group_options {
  size_t size;
  const uint32_t *ranks; /* of the members in the job, the same on each; NULL: all workers */
  size_t rank_count;
  double wait_seconds; /* how long a member waits for others at most; 0: half an hour */
} syncopate_group_options;

/* Opens a group, in which member i has rank i. All of its members call it; where two groups have two members in common,
 * these open them in the same order. */
SYNCOPATE_API syncopate_status syncopate_group_open(syncopate_job *job, const syncopate_group_options *options,
                                                    syncopate_group **group);
/* Waits for what is under way in the group, and frees it. NULL is fine. Once the program has left the job, what was
 * under way has ended with an error. */
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

/* What becomes of the values that workers have at the same place. Integers wrap around; values of bfloat16 and float16
 * are combined in float32. Those of bits are for integers. Errors: CONFIG, for those of bits of floating values. */
typedef enum syncopate_operation {
  SYNCOPATE_SUM = 0,
  SYNCOPATE_PRODUCT = 1,
  SYNCOPATE_MIN = 2,
  SYNCOPATE_MAX = 3,
  SYNCOPATE_BIT_AND = 4,
  SYNCOPATE_BIT_OR = 5,
  SYNCOPATE_BIT_XOR = 6
} syncopate_operation;

/* A collective that goes on while its caller does something else; so do a send and a receive. */
typedef struct syncopate_work syncopate_work;

/* What the bytes of the group's next collective are, such as "float32", or what a reduction is for, such as "the mean", which
 * the program makes of its sum; at most 63 bytes. Where members say different things, all of them get SYNCOPATE_CONFIG_ERROR,
 * in that collective or a later one. Without it bytes are bytes, and a sum is a sum. */
SYNCOPATE_API syncopate_status syncopate_next_type(syncopate_group *group, const char *type);

/* Each collective takes `work`. NULL: it returns once the collective has ended. Else it returns at once and *work
 * stands for the collective, to be freed by syncopate_work_free; memory that it reads or writes stays as it is until
 * the collective has ended. Workers are named by their ranks in the group. */

/* Replaces `count` values by their reduction over all workers: the same bits on each. */
SYNCOPATE_API syncopate_status syncopate_allreduce(syncopate_group *group, void *values, size_t count,
                                                   syncopate_type type, syncopate_operation operation,
                                                   syncopate_work **work);
/* The same on worker `root` alone; the values of the others stay. */
SYNCOPATE_API syncopate_status syncopate_reduce(syncopate_group *group, void *values, size_t count, syncopate_type type,
                                                syncopate_operation operation, uint32_t root, syncopate_work **work);
/* `mine`, of `count` values, becomes block r of the reduction of `values`, of a block for each worker, where this is
 * worker r. */
SYNCOPATE_API syncopate_status syncopate_reduce_scatter(syncopate_group *group, const void *values, void *mine,
                                                        size_t count, syncopate_type type,
                                                        syncopate_operation operation, syncopate_work **work);
/* Replaces `bytes` bytes by those of worker `root`. */
SYNCOPATE_API syncopate_status syncopate_broadcast(syncopate_group *group, void *values, size_t bytes, uint32_t root,
                                                   syncopate_work **work);
/* Block r of `all`, of `bytes` bytes, becomes what worker r passes as `mine`. */
SYNCOPATE_API syncopate_status syncopate_allgather(syncopate_group *group, const void *mine, size_t bytes, void *all,
                                                   syncopate_work **work);
/* The same on worker `root` alone; `all` of the others may be NULL. */
SYNCOPATE_API syncopate_status syncopate_gather(syncopate_group *group, const void *mine, size_t bytes, void *all,
                                                uint32_t root, syncopate_work **work);
/* `mine`, of `bytes` bytes, becomes block r of `all` of worker `root`, where this is worker r; `all` of the others may
 * be NULL. */
SYNCOPATE_API syncopate_status syncopate_scatter(syncopate_group *group, const void *all, size_t bytes, void *mine,
                                                 uint32_t root, syncopate_work **work);
/* Sends a block to each worker and receives one from each. `to` has the blocks one behind the other, of to_bytes[r]
 * bytes for worker r; `from` has room for from_bytes[r] bytes of worker r, as many as that one sends. */
SYNCOPATE_API syncopate_status syncopate_alltoall(syncopate_group *group, const void *to, const size_t *to_bytes,
                                                  void *from, const size_t *from_bytes, syncopate_work **work);
/* Ends when every worker has called it. */
SYNCOPATE_API syncopate_status syncopate_barrier(syncopate_group *group, syncopate_work **work);

/* Stands for any worker where one receives. */
#define SYNCOPATE_ANY UINT32_MAX

/* Sends to one other worker, which receives as many bytes under the same tag, a number below 4096. Messages under one
 * tag arrive in the order in which they were sent. The first 4,096 groups of a job can do it. */
SYNCOPATE_API syncopate_status syncopate_send(syncopate_group *group, const void *values, size_t bytes, uint32_t to,
                                              uint32_t tag, syncopate_work **work);
/* Receives what another worker sends under this tag, in as many bytes.
 * `from`: a worker, or SYNCOPATE_ANY. */
SYNCOPATE_API syncopate_status syncopate_receive(syncopate_group *group, void *values, size_t bytes, uint32_t from,
                                                 uint32_t tag, syncopate_work **work);

/* 1 once it has ended, else 0. */
SYNCOPATE_API int syncopate_work_is_done(const syncopate_work *work);
/* Returns once it has ended, with its status, in every call. SYNCOPATE_CANCELLED: the program has left the job before
 * it began. One thread waits for a receive. */
SYNCOPATE_API syncopate_status syncopate_work_wait(syncopate_work *work);
/* The same, but no longer than `seconds`. *ended is 1 once it has ended, also by an error, else 0. */
SYNCOPATE_API syncopate_status syncopate_work_wait_for(syncopate_work *work, double seconds, int *ended);
/* The sender, once a receive has ended; else SYNCOPATE_ANY. */
SYNCOPATE_API uint32_t syncopate_work_source(const syncopate_work *work);
/* Frees the handle; a collective and a send go on, a receive ends. NULL is fine. */
SYNCOPATE_API void syncopate_work_free(syncopate_work *work);

/* ---- Samples ---- */

/* The order in which one worker trains on the samples of a dataset: in each epoch all workers together take every
 * sample once. Option "data-order": "fixed", the part of each worker follows from the job's seed; "leased", faster
 * workers take more; "auto", leased where the workers of the scheme take different numbers of steps. */
typedef struct syncopate_share syncopate_share;

/* This worker's share of a dataset of `samples` samples, in steps of which all workers together take `batch_size`
 * samples. Training counts epochs and weighs steps by these sizes. */
SYNCOPATE_API syncopate_status syncopate_share_open(syncopate_job *job, uint64_t samples, uint64_t batch_size,
                                                    syncopate_share **share);
/* Frees the share. NULL is fine. */
SYNCOPATE_API void syncopate_share_close(syncopate_share *share);

/* Samples of a step of this worker. */
SYNCOPATE_API uint64_t syncopate_share_step_size(const syncopate_share *share);
/* The indices of the next step, in order, valid until the next call with this share; *count is 0 at the end of an
 * epoch, and the call after that begins the next epoch. */
SYNCOPATE_API syncopate_status syncopate_share_next(syncopate_share *share, const uint64_t **indices, size_t *count);
/* Begins the next epoch, unless this one has not begun, or goes on by syncopate_share_resume with the next step. */
SYNCOPATE_API syncopate_status syncopate_share_next_epoch(syncopate_share *share);
/* Goes on behind the first `step` steps of `epoch`, which an earlier job has taken. Where samples are leased these are
 * not known, and the epoch begins again. Errors: CONFIG, for more steps than this worker has in the epoch, and an epoch
 * above 2^32 - 1. */
SYNCOPATE_API syncopate_status syncopate_share_resume(syncopate_share *share, uint64_t epoch, uint64_t step);
/* The steps of this worker in the epoch under way, and their samples. Either may be NULL. Errors: CONFIG, where samples
 * are leased: the other workers then decide with it. */
SYNCOPATE_API syncopate_status syncopate_share_length(syncopate_share *share, uint64_t *steps, uint64_t *samples);
/* Whole epochs so far. */
SYNCOPATE_API uint64_t syncopate_share_epoch(const syncopate_share *share);
/* Steps so far in the epoch under way. */
SYNCOPATE_API uint64_t syncopate_share_step(const syncopate_share *share);

/* ---- Training ---- */

/* The flat float32 vectors of a replica. */
typedef enum syncopate_vector {
  SYNCOPATE_PARAMETERS = 0,
  SYNCOPATE_GRADIENTS = 1, /* the mean gradient of a step: as long as the parameters, and in their order */
  SYNCOPATE_BUFFERS = 2    /* floating state that is not trained: BatchNorm's running statistics */
} syncopate_vector;

/* Memory that all workers of this host can read, which the library gives to a replica. */
typedef struct syncopate_memory syncopate_memory;
/* No value of the memory is used any more. From any thread, also after the job. */
SYNCOPATE_API void syncopate_memory_release(syncopate_memory *memory);

/* What the scheme trains: the program's own model and optimizer.
 *
 * Callbacks run while the program is inside syncopate_training_start, `_begin_pass`, `_step`, `_finish` or `_close`, one
 * at a time, on a thread of the library, and call none of its functions but syncopate_memory_release. One that can fail
 * returns NULL, or its reason, which stays valid until the next callback; training then ends with that message. */
typedef struct syncopate_replica {
  size_t size;
  void *user; /* first argument of every callback */
  uint64_t parameter_count;
  uint64_t buffer_count;
  /* Sets *values to the host memory of a vector, with its present values. A change to it takes effect with `store`. */
  const char *(*view)(void *user, syncopate_vector which, float **values);
  /* Copies the host memory of a vector back to where the model has it. NULL: the model is in that memory itself. */
  const char *(*store)(void *user, syncopate_vector which);
  /* The vector is to live in `values` from now on, where the library has copied it, so that workers of one host reduce
   * it in place. NULL: it stays where it is. The program releases `memory` when nothing is in it any more. */
  const char *(*move)(void *user, syncopate_vector which, float *values, syncopate_memory *memory);
  /* One step of the program's optimizer on its parameters, with its learning rate times `rate_factor`. */
  const char *(*take_step)(void *user, double rate_factor);
  /* Tensors of the model, where a step may leave some of them without a gradient (syncopate_training_has_gradients); 0: each
   * has one in every step. The same on all workers. */
  uint64_t tensor_count;
  /* Called before `take_step`, where other tensors have a gradient than in the program's own step: the optimizer moves tensor
   * i where tensors[i] is 1, and leaves the others as they are, until the program's next step. */
  const char *(*use_gradients)(void *user, const uint8_t *tensors);
} syncopate_replica;

/* Gets an event: what this worker logs of a synchronization round, as an object of JSON in one line. docs/reference/records.md
 * describes the fields (workers/N.jsonl). Called as the callbacks of a replica are. */
typedef void (*syncopate_round_function)(void *user, const char *json);

/* How a replica is trained, and by which scheme. */
typedef struct syncopate_training_options {
  size_t size;
  const char *scheme; /* as in syncopate_join_options */
  const syncopate_option *options;
  size_t option_count;
  uint32_t batch_size; /* samples of a usual step, the same on all workers; 0: that of syncopate_share_open */
  double learning_rate;
  /* Options of `syncopate train` that describe the optimizer: {"optimizer", "momentum"}, {"momentum", "0.9"}, and so
   * weight-decay, beta1, beta2, epsilon and alpha; others are refused. A parameter server that keeps the model applies
   * this rule. */
  const syncopate_option *rule;
  size_t rule_count;
  const char *has_no_rule; /* why a server cannot apply it; NULL: it can */
  syncopate_round_function on_round; /* may be NULL; a job of one process alone has no rounds */
  void *on_round_user;
} syncopate_training_options;

/* The training of one replica by a loop of the program's own, from syncopate_training_start to
 * syncopate_training_close. */
typedef struct syncopate_training syncopate_training;

/* The scheme of a training. Flags are 0 or 1. */
typedef struct syncopate_scheme_traits {
  size_t size;
  const char *scheme;   /* its name */
  const char *options;  /* all options that were given, the scheme among them, as an object of JSON: {"seed": "2"} */
  int in_rounds;        /* the workers end each synchronization round together */
  int in_lockstep;      /* they take equally many steps, except the last ones of an epoch */
  int local_steps;      /* each takes steps of its own optimizer between two rounds */
  int takes_means;      /* a round only replaces gradients, or parameters, by their mean over the workers */
  int waits_for_steps;  /* without rounds: a step may wait until other workers have taken theirs */
  int pulls_each_step;  /* each step brings the parameters that a server or shared memory keeps */
  int pulls_some_steps; /* a worker gets them after several steps of its own */
} syncopate_scheme_traits;

/* Fills `traits`, whose size the caller has set, for a training with this scheme and these options, which may be NULL,
 * together with those of syncopate_join and of the command line. Its texts stay until the next call for this job.
 * Errors: SYNCOPATE_CONFIG_ERROR. */
SYNCOPATE_API syncopate_status syncopate_describe_scheme(syncopate_job *job, const char *scheme,
                                                         const syncopate_option *options, size_t option_count,
                                                         syncopate_scheme_traits *traits);

/* Before a program changes its model for a training. Errors: SYNCOPATE_CONFIG_ERROR, where the job has one. */
SYNCOPATE_API syncopate_status syncopate_training_may_start(const syncopate_job *job);

/* Waits until every worker has started, and gives all replicas the parameters of worker 0. Once a job of more than one
 * process. What the callbacks use outlives the training; the structs need not. */
SYNCOPATE_API syncopate_status syncopate_training_start(syncopate_job *job, const syncopate_replica *replica,
                                                        const syncopate_training_options *options,
                                                        syncopate_training **training);

/* 1 where a parameter server takes the optimizer's steps, else 0. */
SYNCOPATE_API int syncopate_training_server_steps(const syncopate_training *training);
/* 1 where a parameter server takes steps of the whole model by a rule that moves tensors whose gradient is zero, such as one
 * with a momentum or a weight decay: a step needs a gradient of each tensor there. Else 0. */
SYNCOPATE_API int syncopate_training_server_moves_all(const syncopate_training *training);
/* 1 where a step takes the mean gradient of all workers, who take all steps together, else 0. */
SYNCOPATE_API int syncopate_training_shares_gradients(const syncopate_training *training);
/* 1 where gradients leave during the backward pass, as far as the program reports them: scheme ssgd with option overlap
 * on. Else 0. */
SYNCOPATE_API int syncopate_training_overlaps(const syncopate_training *training);
/* Samples of a usual step. */
SYNCOPATE_API uint32_t syncopate_training_batch_size(const syncopate_training *training);

/* The backward pass of a step of `samples` samples begins, of which the program is going to report gradients. Returns when
 * the library takes them. Where syncopate_training_overlaps is 0, this and the reports have no effect. Errors: those of
 * syncopate_training_step; SYNCOPATE_CONFIG_ERROR, for a second pass before a step. */
SYNCOPATE_API syncopate_status syncopate_training_begin_pass(syncopate_training *training, uint32_t samples);
/* `count` values of SYNCOPATE_GRADIENTS from `first` on are final, and in host memory: the program neither reads nor writes
 * them before its step has returned. Values that it does not report are final at the step. Errors: SYNCOPATE_CONFIG_ERROR,
 * for a value that was reported before, and before a pass has begun. */
SYNCOPATE_API syncopate_status syncopate_training_gradients_ready(syncopate_training *training, uint64_t first,
                                                                  uint64_t count);

/* From now on steps are taken with these settings of the program's optimizer: the learning rate of its first group, and a
 * checksum, other than 0, of all settings of all groups. Where workers share gradients, as under ssgd, the next step of all of
 * them ends by SYNCOPATE_CONFIG_ERROR if they differ: replicas would drift apart. A program that never calls it answers for
 * that itself. */
SYNCOPATE_API syncopate_status syncopate_training_use_settings(syncopate_training *training, double learning_rate,
                                                               uint32_t checksum);

/* From now on the gradients of steps are those of the tensors i with tensors[i] 1, of the replica's tensor_count. The others
 * took no part in the backward passes, and their part of SYNCOPATE_GRADIENTS is zero. Before the first call each has one.
 * Where workers share gradients, a tensor that has none on any of them is in no step; one that some have moves by the mean in
 * which that of the others is zero, as in one pass over the samples of all. */
SYNCOPATE_API syncopate_status syncopate_training_has_gradients(syncopate_training *training, const uint8_t *tensors);

/* SYNCOPATE_GRADIENTS holds the mean gradient of `samples` samples. Returns when the parameters for the next step are
 * there. Errors: that which ended the job; SYNCOPATE_CANCELLED, when the user has ended it; SYNCOPATE_CONFIG_ERROR, for
 * another number of samples than its pass began with; SYNCOPATE_NOT_FINITE, for a gradient that is not, unless option
 * on-nan is skip. A process alone looks at the gradient of a replica without the callback `store`. */
SYNCOPATE_API syncopate_status syncopate_training_step(syncopate_training *training, uint32_t samples);
/* The same for a process that is alone, and has looked at its gradient itself: `finite` is 0 where a value of it is not
 * finite. The library reads SYNCOPATE_GRADIENTS only then. Errors: also SYNCOPATE_CONFIG_ERROR, in a job of others. */
SYNCOPATE_API syncopate_status syncopate_training_step_alone(syncopate_training *training, uint32_t samples, int finite);

/* Called by all workers between two steps, where their programs have given all replicas the same parameters and buffers, such
 * as those of an earlier moment: training goes on from these. Optimizers keep their states; a momentum over rounds begins
 * again. No worker may have samples that others have not taken yet: where workers take steps of their own, all of them take
 * some without samples first, whose rounds are the last before this call. Errors: those of syncopate_training_step. */
SYNCOPATE_API syncopate_status syncopate_training_take_replica(syncopate_training *training);

/* The loop takes no further step. Waits for the loops of all workers; then the replica holds the model of the job.
 * Errors: that which ended the job; SYNCOPATE_CONFIG_ERROR, on all workers, where the model of one is another, since its
 * program has changed the parameters outside of the job's steps. */
SYNCOPATE_API syncopate_status syncopate_training_finish(syncopate_training *training);

/* Ends the job for all workers: this program leaves its loop by an error. The others get `reason`. Then close it. */
SYNCOPATE_API void syncopate_training_abandon(syncopate_training *training, const char *reason);

/* Finishes, where that has not been done, and frees it. NULL is fine. */
SYNCOPATE_API void syncopate_training_close(syncopate_training *training);

#ifdef __cplusplus
}
#endif

#endif
