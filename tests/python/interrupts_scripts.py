"""Scripts in which a worker waits for one that does not come, for interrupts_test.py: interrupts_scripts.py NAME [HOW]."""
import os
import signal
import sys

import scripts
import syncopate_torch as syncopate
import torch
from calls import run_calls, say

kept = []


class Loop:
    """A loop that takes one step after the other."""

    def __init__(self, job):
        self._points, self._labels, self._network = scripts.problem()
        self.optimizer = job.DistributedOptimizer(scripts.sgd(self._network), self._network, batch_size=32)

    def step(self):
        scripts.take_steps(self.optimizer, self._network, self._points, self._labels, 1)


def is_wait(frame):
    """Returns True if the signal interrupted a waiting call of the library; `frame` is the signal handler's argument."""
    while frame is not None:
        code = frame.f_code
        if (os.path.basename(code.co_filename), code.co_name) in (("process.py", "_look"), ("library.py", "wait")):
            return True
        frame = frame.f_back
    return False


def on_interrupt(act):
    """Calls `act` on SIGINT, but only once the worker waits: the test may send the signal earlier."""

    def handler(_number, frame):
        if is_wait(frame):
            act()
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.05)

    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGALRM, handler)


def interrupt():
    raise KeyboardInterrupt


def pause():
    """Waits until the test sends SIGUSR1."""
    print("ready", flush=True)
    signal.pause()


def of_training(job, how):
    """Takes a first step with all workers; returns a function that waits for the other workers."""
    loop = Loop(job)
    loop.step()
    kept.append(loop)  # keeps it until the end of the script
    return {"step": loop.step, "align": loop.optimizer.align, "finish": loop.optimizer.finish, "end": lambda: None}[how]


def waits(how):
    """Worker 1 (with how = "leave", worker 0) waits for the other worker, which pauses and then makes the same call."""
    on_interrupt(interrupt)
    if how == "init":
        print("ready", flush=True)
    job = syncopate.init("esync" if how == "align" else "ssgd")
    before = {"group": lambda: job.open_group([0, 1]), "optimizer": lambda: Loop(job), "leave": job.leave}
    wait = before[how] if how in before else of_training(job, how)
    if job.rank == (1 if how == "leave" else 0):
        pause()
    else:
        print("ready", flush=True)
    wait()


def catches():
    """Catches the interrupt of an `align` and calls it again."""
    on_interrupt(interrupt)
    job = syncopate.init("ssgd")
    align = of_training(job, "align")
    if job.rank == 0:
        pause()
        align()
    print("ready", flush=True)
    try:
        align()
    except KeyboardInterrupt:
        align()


def in_a_callback():
    """Ctrl-C reaches worker 1 at the first line of a callback of the library."""
    job = syncopate.init()
    loop = Loop(job)
    loop.step()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_name == "callback":
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    if job.rank == 1:
        sys.setprofile(profile)
    for _ in range(100):
        loop.step()


def handles(how):
    """Worker 1 waits in a step, or at its end, and its signal handlers do other things than raise KeyboardInterrupt."""
    job = syncopate.init("ssgd")
    step = of_training(job, "step")

    def leave():
        job.leave()
        sys.exit(5)

    on_interrupt({"leaves": leave, "raises twice": interrupt, "steps": step, "exits": lambda: sys.exit(5),
                  "goes on": lambda: print("handled", flush=True)}[how])
    if how == "raises twice":
        signal.signal(signal.SIGTERM, lambda *_: signal.setitimer(signal.ITIMER_REAL, 0) and sys.exit(5))
    if job.rank == 0:
        pause()
    else:
        print("ready", flush=True)
    if how != "exits":
        step()


def saves(how):
    """Trains until SIGTERM, which the script's own handler or the job reports, and ends the training normally."""
    come = []
    if how == "handler":
        signal.signal(signal.SIGTERM, lambda *_: come.append(True))
    job = syncopate.init("ssgd")
    loop = Loop(job)
    loop.step()
    assert not job.interrupted
    print("ready", flush=True)
    while not (come if how == "handler" else job.interrupted):
        loop.step()
    assert job.interrupted == (how == "job")
    loop.optimizer.finish()
    say(saved=job.rank)


def joins_again():
    """Worker 0 is interrupted while it waits for worker 1 to join, and joins again."""
    if os.environ["RANK"] == "0":
        on_interrupt(interrupt)
        print("ready", flush=True)
        try:
            syncopate.init()
        except KeyboardInterrupt:
            print("again", flush=True)
    print("ready", flush=True)
    job = syncopate.init()
    print(f"sum {job.allreduce(torch.ones(1)).item()}")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: None)  # ends a pause
    run_calls(globals())
