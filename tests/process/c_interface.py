"""The C interface through ctypes, and programs that use it: c_interface.py PROGRAM [ARGUMENT...]."""
import ctypes
import itertools
import json
import os
import signal
import sys

LIBRARY = ctypes.CDLL(os.environ["SYNCOPATE_LIBRARY"])
OK, ERROR, CONFIG_ERROR, CANCELLED = 0, 1, 2, 8
FLOAT32, FLOAT64, INT64, INT8 = 0, 1, 3, 6
SUM, BIT_AND = 0, 4
ANY = 2**32 - 1
PARAMETERS, GRADIENTS, BUFFERS = 0, 1, 2

Floats = ctypes.POINTER(ctypes.c_float)
LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
# The callbacks return the address of a reason, since ctypes cannot convert a returned str.
VIEW = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Floats))
STORE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
MOVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, Floats, ctypes.c_void_p)
ROUND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
STEP = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double)

LIBRARY.syncopate_last_error.restype = ctypes.c_char_p
LIBRARY.syncopate_version.restype = ctypes.c_char_p
LIBRARY.syncopate_everyone.restype = ctypes.c_void_p
for _function in ("host_coordinator", "host_key"):
    getattr(LIBRARY, "syncopate_" + _function).restype = ctypes.c_char_p
for _function in ("share_step_size", "share_epoch", "share_step"):
    getattr(LIBRARY, "syncopate_" + _function).restype = ctypes.c_uint64


class Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class JoinOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("scheme", ctypes.c_char_p), ("options", ctypes.POINTER(Option)),
                ("option_count", ctypes.c_size_t), ("entry", ctypes.c_void_p), ("wait_seconds", ctypes.c_double)]


class Replica(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("parameter_count", ctypes.c_uint64),
                ("buffer_count", ctypes.c_uint64), ("view", VIEW), ("store", STORE), ("move", MOVE), ("take_step", STEP)]


FLAGS = ("in_rounds", "in_lockstep", "local_steps", "takes_means", "waits_for_steps", "pulls_each_step", "pulls_some_steps")


class SchemeTraits(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("scheme", ctypes.c_char_p), ("options", ctypes.c_char_p),
                *((flag, ctypes.c_int) for flag in FLAGS)]


class TrainingOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("scheme", ctypes.c_char_p), ("options", ctypes.POINTER(Option)),
                ("option_count", ctypes.c_size_t), ("batch_size", ctypes.c_uint32), ("learning_rate", ctypes.c_double),
                ("rule", ctypes.POINTER(Option)), ("rule_count", ctypes.c_size_t), ("has_no_rule", ctypes.c_char_p),
                ("on_round", ROUND), ("on_round_user", ctypes.c_void_p)]


class Failed(Exception):
    def __init__(self, status):
        super().__init__(LIBRARY.syncopate_last_error().decode())
        self.status = status


def check(status):
    if status != OK:
        raise Failed(status)


def everyone(job):
    """The group of all workers."""
    return ctypes.c_void_p(LIBRARY.syncopate_everyone(job))


def join(options=None):
    job = ctypes.c_void_p()
    check(LIBRARY.syncopate_join(None if options is None else ctypes.byref(options), ctypes.byref(job)))
    return job


class Line:
    """A replica that learns y = 2 x + 1 by SGD: two parameters, which the library may move to its own memory."""

    rate = 0.1

    def __init__(self, fails_at=None):
        self.vectors = [(ctypes.c_float * 2)(), (ctypes.c_float * 2)()]
        self.moved = []
        self.steps = 0
        self.fails_at = fails_at
        self.reason = ctypes.create_string_buffer(b"the optimizer of this program has lost its state")
        self.callbacks = (VIEW(self.view), MOVE(self.move), STEP(self.take_step))
        self.rounds = []
        self.on_round = ROUND(lambda _user, line: self.rounds.append(json.loads(line)))

    def view(self, _user, which, values):
        values[0] = ctypes.cast(self.vectors[which], Floats)

    def move(self, _user, which, values, memory):
        self.vectors[which] = values
        self.moved.append(memory)

    def take_step(self, _user, rate_factor):
        self.steps += 1
        if self.steps == self.fails_at:
            return ctypes.addressof(self.reason)
        for i in range(2):
            self.vectors[PARAMETERS][i] -= self.rate * rate_factor * self.vectors[GRADIENTS][i]
        return None

    def set_gradient(self, xs):
        w, b = self.vectors[PARAMETERS][0], self.vectors[PARAMETERS][1]
        errors = [w * x + b - (2 * x + 1) for x in xs]
        self.vectors[GRADIENTS][0] = sum(2 * error * x for error, x in zip(errors, xs)) / len(xs)
        self.vectors[GRADIENTS][1] = sum(2 * error for error in errors) / len(xs)

    def start(self, job, scheme=None, batch_size=4, overlap=None):
        view, move, take_step = self.callbacks
        replica = Replica(size=ctypes.sizeof(Replica), parameter_count=2, view=view, move=move, take_step=take_step)
        rule = (Option * 1)(Option(b"optimizer", b"sgd"))
        given = (Option * 1)(Option(b"overlap", overlap))
        options = TrainingOptions(size=ctypes.sizeof(TrainingOptions), scheme=scheme, options=given,
                                  option_count=0 if overlap is None else 1, batch_size=batch_size,
                                  learning_rate=self.rate, rule=rule, rule_count=1, on_round=self.on_round)
        training = ctypes.c_void_p()
        check(LIBRARY.syncopate_training_start(job, ctypes.byref(replica), ctypes.byref(options), ctypes.byref(training)))
        return training

    def release(self):
        for memory in self.moved:
            LIBRARY.syncopate_memory_release(ctypes.c_void_p(memory))


def join_or_say():
    """Prints the error of a join that fails."""
    try:
        LIBRARY.syncopate_leave(join())
    except Failed as error:
        print(f"status {error.status}: {error}", flush=True)
        os._exit(0)


def train(scheme, steps, fails_at=None):
    """Each worker trains on different points of the same line."""
    job = join()
    rank = LIBRARY.syncopate_rank(job)
    line = Line(fails_at)
    training = line.start(job, scheme.encode())
    for step in range(int(steps)):
        line.set_gradient([((step * 7 + rank * 3 + i) % 8) / 8 for i in range(4)])
        check(LIBRARY.syncopate_training_step(training, 4))
    check(LIBRARY.syncopate_training_finish(training))
    print(f"worker {rank}: w {line.vectors[0][0]:.6f} b {line.vectors[0][1]:.6f} moved {len(line.moved)}", flush=True)
    print(f"rounds {len(line.rounds)} to {line.rounds[-1]['round']}, samples {sum(round['own_samples'] for round in line.rounds)}")
    LIBRARY.syncopate_training_close(training)
    line.release()
    LIBRARY.syncopate_leave(job)


def train_and_stay(steps):
    """Worker 1 takes `steps` steps and then waits for ever; the others go on."""
    job = join()
    line = Line()
    training = line.start(job)
    is_last = LIBRARY.syncopate_rank(job) == 1
    for _ in itertools.count() if not is_last else range(int(steps)):
        line.set_gradient([0.5])
        check(LIBRARY.syncopate_training_step(training, 4))
    print(os.getpid(), flush=True)
    signal.pause()


def train_to_nan():
    job = join()
    line = Line()
    training = line.start(job)
    for x in (0.5, float("nan")):
        line.set_gradient([x])
        check(LIBRARY.syncopate_training_step(training, 4))


def train_twice(scheme, steps):
    train(scheme, steps)
    train(scheme, steps)


def join_twice():
    """Joins a second job while the first one is running."""
    job = join()
    join_or_say()
    LIBRARY.syncopate_leave(job)


def train_or_say(scheme, steps, fails_at):
    try:
        train(scheme, steps, int(fails_at) if os.environ["SYNCOPATE_RANK"] == "1" else None)
    except Failed as error:
        print(f"status {error.status}: {error}", flush=True)
        os._exit(0)  # the error has already ended the job


def train_logged(scheme, steps):
    take = LOG(lambda _user, level, line: print(f"log {level}: {line.decode()}", flush=True))
    LIBRARY.syncopate_set_log(take, None, 0)
    train(scheme, steps)
    LIBRARY.syncopate_set_log(None, None, 0)


def call_in_turn(*names):
    """Calls the collectives that `names` lists for this worker, one after the other, and prints the first error."""
    values = (ctypes.c_double * 4)()
    size = ctypes.c_size_t
    collectives = {
        "float32": lambda group: LIBRARY.syncopate_allreduce(group, values, size(4), FLOAT32, SUM, None),
        "float64": lambda group: LIBRARY.syncopate_allreduce(group, values, size(4), FLOAT64, SUM, None),
        "broadcast": lambda group: LIBRARY.syncopate_broadcast(group, values, size(32), 0, None),
        "barrier": lambda group: LIBRARY.syncopate_barrier(group, None),
        "long": lambda group: LIBRARY.syncopate_allreduce(group, (ctypes.c_float * 100000)(), size(100000), FLOAT32, SUM, None),
    }
    job = join(JoinOptions(size=ctypes.sizeof(JoinOptions), wait_seconds=60))
    try:
        for name in names[LIBRARY.syncopate_rank(job)].split(","):
            check(collectives[name](everyone(job)))
        print("no error", flush=True)
    except Failed as error:
        print(f"status {error.status}: {error}", flush=True)
    LIBRARY.syncopate_leave(job)


def wait_for_one():
    """Worker 1 calls no collective, and leaves once worker 0 has reported that its wait ended."""
    job = join(JoinOptions(size=ctypes.sizeof(JoinOptions), wait_seconds=0.5))
    if LIBRARY.syncopate_rank(job) == 0:
        try:
            check(LIBRARY.syncopate_barrier(everyone(job), None))
        except Failed as error:
            print(f"status {error.status}: {error}", flush=True)
    else:
        os.close(os.open("waited", os.O_RDONLY))  # a named pipe, which the test opens
    LIBRARY.syncopate_leave(job)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
