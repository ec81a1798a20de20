"""Workers of which one waits in vain, for interrupts_test.py: interrupts_scripts.py waits HOW."""
import os
import signal
import sys

import scripts
import syncopate_torch as syncopate
import torch


kept = []


class Loop:
    """A loop that takes one step after the other."""

    def __init__(self, job):
        self._points, self._labels, self._network = scripts.problem()
        self.optimizer = job.DistributedOptimizer(scripts.sgd(self._network), self._network, batch_size=32)

    def step(self):
        scripts.take_steps(self.optimizer, self._network, self._points, self._labels, 1)


def interrupt(number, frame):
    """Ctrl-C while the worker waits, however early the test sends it."""
    while frame is not None:
        code = frame.f_code
        if (os.path.basename(code.co_filename), code.co_name) in (("interruption.py", "_look"), ("_c.py", "wait")):
            raise KeyboardInterrupt
        frame = frame.f_back
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def of_training(job, how):
    """A wait after the first step of all."""
    loop = Loop(job)
    loop.step()
    kept.append(loop)  # until the end of the script
    return {"step": loop.step, "align": loop.optimizer.align, "finish": loop.optimizer.finish, "end": lambda: None}[how]


def waits(how):
    """The last worker, or the first one in `leave`, waits for the other, which pauses, and then does the same."""
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGUSR1, lambda *_: None)  # ends the pause
    if how == "init":
        print("ready", flush=True)
    job = syncopate.init("esync" if how == "align" else "ssgd")
    before = {"group": lambda: job.open_group([0, 1]), "optimizer": lambda: Loop(job), "leave": job.leave}
    wait = before[how] if how in before else of_training(job, how)
    print("ready", flush=True)
    if job.rank == (1 if how == "leave" else 0):
        signal.pause()
    wait()


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
