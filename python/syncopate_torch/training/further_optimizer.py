"""Further optimizers of a job, such as those of a generator and a discriminator, or an actor and a critic; reductions before
a step for workers whose loops take different numbers of steps."""
import contextlib
import threading
import weakref

import torch

from syncopate_torch.core.arguments import shared_object
from syncopate_torch.core.errors import ConfigError, NotFinite
from syncopate_torch.core.torch_versions import ZERO_GRAD_SETS_TO_NONE
from syncopate_torch.training.batch_norm import SynchronizedLayers
from syncopate_torch.training.flat import (WrappedTensors, expect_apart, expect_exchanged, expect_same_to_train, frozen_tensors,
                                           trained_tensors, untrained_tensors)
from syncopate_torch.training.gradients import as_gradient, is_finite
from syncopate_torch.training.replica import expect_parameters
from syncopate_torch.training.torch_optimizers import StandIn, StepSettings, refuse_other_steps


_USUAL_LOCAL_STEPS = 10
# Options of rounds that only the engine supports.
_OF_ROUNDS = {"global-lr", "drift-correction", "local-rate"}


class FurtherOptimizer(StandIn):
    """The result of `job.DistributedOptimizer` while the job trains with another optimizer: an optimizer with its own
    module.

    Its steps follow the job's scheme, by collectives that all workers call in the same order. Under `ssgd` each step
    takes the mean gradient, weighted as in `DistributedOptimizer.step`; under `local-sgd` workers average their
    parameters after every `local-steps` steps. Running statistics are averaged in both cases. The training ends for all
    optimizers of a job together, with the `finish` of any of them.

    Errors: ConfigError under other schemes, for options other than `batch_size`, and those of `DistributedOptimizer`.
    """

    def __init__(self, leading, job, optimizer, module, batch_size=None):
        """leading: the `DistributedOptimizer` that is training."""
        if not leading.scheme.takes_means and job.size > 1:
            raise ConfigError(f"the job trains with an optimizer already, and under {leading.scheme.name} it takes no other one: choose "
                              "ssgd or local-sgd, or give one optimizer the parameters of both modules, and after each of "
                              "its steps compute again what the next loss uses")
        _expect_plain_means(leading.scheme.options)
        super().__init__(optimizer)
        named, untrained = trained_tensors(module), untrained_tensors(module)
        expect_parameters(optimizer, named)
        expect_apart(named + untrained)
        expect_exchanged(named)
        if leading.holds([parameter for _, parameter in named]):
            raise ConfigError("this module has parameters that another optimizer of the job trains; give each optimizer a module "
                              "of its own, such as model.critic")
        self.leading, self._job, self._module, self._batch_size = leading, job, module, batch_size
        self._parameters, self._buffers = ([tensor for _, tensor in pairs] for pairs in (named, untrained))
        self._steps, self._pending, self._rounds = 0, 0, 0
        self.takes_step, self.is_training = False, True
        refuse_other_steps(optimizer, self)
        self._wrapped = WrappedTensors(module, optimizer)
        job.keep_state("optimizer", self)
        if job.size > 1:
            expect_same_to_train(job.everyone, module)
            for tensor in (*self._everything(), *frozen_tensors(module)):
                job.broadcast(tensor.data)
        self._synchronized = SynchronizedLayers(job, module, leading.scheme)
        self._settings = StepSettings(optimizer)
        self._code = 0  # checksum of the settings
        length = sum(tensor.numel() for tensor in self._everything())
        self._means = RestingSum(job, length, flags=1 + len(self._parameters), compares=True)
        self.overflows = RestingSum(job, 1)
        leading.take_further(self, [self._means, self.overflows])

    def _everything(self):
        return [*self._parameters, *self._buffers]

    def has(self, tensors):
        """True if any of the tensors is a parameter or buffer of its module."""
        own = set(map(id, self._everything()))
        return any(id(tensor) in own for tensor in tensors)

    def _expect_to_train(self, params):
        """Checks parameters before they are added to a group. Errors: ConfigError for parameters of another module."""
        self._wrapped.expect_trained(params)

    @property
    def shares_gradients(self):
        """True if a step takes the mean gradient of all workers."""
        return self.leading.scheme.steps_together

    def zero_grad(self, set_to_none=ZERO_GRAD_SETS_TO_NONE):
        """Removes the gradients of the module, or sets them to zero."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def step(self, closure=None, weight=None):
        """Takes a step of this worker, as `DistributedOptimizer.step`."""
        loss = self.leading.loss_of(closure)
        self.leading.expect_under_way()
        weight = self._weight(weight)
        self.synchronize(weight)
        self.takes_step = True
        try:
            self.optimizer.step()
        finally:
            self.takes_step = False
        self._steps += 1
        self._pending += weight
        if self.leading.scheme.local_steps and self._steps % self._local_steps() == 0:
            self._average()
        return loss

    # Keeps torch from wrapping it for its profiler; the wrapper itself has no hooks.
    step.hooked = True

    def synchronize(self, weight=None):
        """As `DistributedOptimizer.synchronize`. A later `step` takes the mean again, of gradients that are then
        equal."""
        self._wrapped.expect_unchanged()
        weight = self._weight(weight)
        if not self.shares_gradients:
            return
        finite = all(map(self._has_finite_gradient, self._parameters))
        if finite and self._job.size == 1:
            return
        if not finite and self.leading.skips:
            weight = 0
        gradients = [_dense(parameter) for parameter in self._parameters]
        flags = bytes(parameter.grad is not None for parameter in self._parameters)
        parts, flags = self._mean([*gradients, *self._buffers], weight, flags)
        for parameter, part, flag in zip(self._parameters, parts, flags):
            parameter.grad = as_gradient(parameter, part) if flag else None
        self._expect_finite(parts)

    def _has_finite_gradient(self, parameter):
        """A job of one worker does not check values on a device, to avoid a wait for it."""
        is_looked_at = self._job.size > 1 or parameter.device.type == "cpu"
        return parameter.grad is None or not is_looked_at or is_finite(parameter.grad)

    def _mean(self, tensors, weight, flags):
        """Returns the mean of tensors like `_everything`, and flags of the parameters. Buffers are updated at once."""
        vector = torch.cat([tensor.detach().reshape(-1).to("cpu", torch.float32) for tensor in tensors])
        changed = self._settings.changed()
        self._code = self._code if changed is None else changed[1]
        mean, (some, *flags) = self._means.mean(vector, self.leading.weight_in_mean(weight), bytes([1]) + flags, self._code)
        parts = [part.view(tensor.shape) for part, tensor in zip(mean.split([tensor.numel() for tensor in tensors]), tensors)]
        if some:
            with torch.no_grad():
                for buffer, part in zip(self._buffers, parts[len(self._parameters):]):
                    buffer.copy_(part)
        return parts[:len(self._parameters)], flags

    def _average(self):
        """Averages the parameters of all workers, weighted by their samples since the last average."""
        flags = bytes(len(self._parameters))
        parts, _ = self._mean(self._everything(), self._pending, flags)
        if self._means.last_weight > 0:
            with torch.no_grad():
                for parameter, part in zip(self._parameters, parts):
                    parameter.copy_(part)
        self._expect_finite(parts)
        self._pending = 0
        self._rounds += 1

    def _local_steps(self):
        return int(self.leading.scheme.options.get("local-steps", _USUAL_LOCAL_STEPS))

    def _weight(self, weight):
        return self.leading.weight_of_step(self._batch_size if weight is None else weight)

    def _expect_finite(self, tensors):
        """Errors: NotFinite, on all workers together. With a loss scale the scaler decides instead."""
        if not self._job.scales_loss and not all(is_finite(tensor) for tensor in tensors):
            raise NotFinite(f"a value of the module of {type(self.optimizer).__name__}, a further optimizer of the job, is not finite "
                            f"after {self._steps} steps of it: lower the learning rate, or look at the data of that step")

    def become_equal(self):
        """Makes the model equal on all workers while none takes a step: workers that have rested get the model of the
        others."""
        if self._job.size == 1:
            return
        everyone = self._job.everyone
        facts = [each.tolist() for each in everyone.allgather(torch.tensor([self._steps, self._rounds, self._pending]))]
        if self.leading.scheme.local_steps and any(pending for _, _, pending in facts):
            self._average()
        elif len({(steps, rounds) for steps, rounds, _ in facts}) > 1:
            last = max(range(len(facts)), key=lambda rank: (facts[rank][1], facts[rank][0]))
            for tensor in self._everything():
                everyone.broadcast(tensor.data, last)
            if self.shares_gradients:
                state = shared_object(everyone, self.optimizer.state_dict(), last)
                if everyone.rank != last:
                    self.optimizer.load_state_dict(state)
        self._steps, self._rounds = (max(column) for column in list(zip(*facts))[:2])

    def end(self):
        """Ends this optimizer; called when the job's training has ended."""
        self.become_equal()
        self._synchronized.release()
        self.is_training = False

    # The leading optimizer handles the following: a job has one training.

    def finish(self):
        """As `DistributedOptimizer.finish`, for all optimizers of the job."""
        self.leading.finish()

    def align(self, place="align"):
        """As `DistributedOptimizer.align`."""
        self.leading.align(place)

    def abandon(self, error):
        """As `DistributedOptimizer.abandon`."""
        self.leading.abandon(error)

    def trains(self, tensors):
        """As `DistributedOptimizer.trains`, for tensors in the library's flat vectors."""
        return self.leading.trains(tensors)

    def replica_set(self, tensors):
        return self.leading.replica_set(tensors)

    def no_sync(self):
        """Returns an empty context: gradients are sent in `step`."""
        return contextlib.nullcontext()

    def expect(self, weight):
        """Has no effect: gradients are sent in `step`."""

    def expect_no_pass(self, what):
        """Has no effect: no gradient is sent during a pass."""

    @property
    def samples(self):
        """As `DistributedOptimizer.samples`."""
        return self.leading.samples

    @property
    def batch_size(self):
        """Samples in a usual step of this worker."""
        return self._batch_size or self.leading.batch_size

    @property
    def is_under_way(self):
        return self.leading.is_under_way

    @property
    def steps_taken(self):
        return self.leading.steps_taken

    def summary_row(self):
        return self.leading.summary_row()

    def follow_samples(self, scheduler):
        self.leading.follow_samples(scheduler)

    def job_state(self):
        """Returns the state for `Job.state_dict`."""
        return self.saved_with(self._module)

    def take_job_state(self, state, _same_size):
        self._module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        self.leading.__exit__(_kind, error, _trace)


def _dense(parameter):
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad


def _expect_plain_means(options):
    given = sorted(_OF_ROUNDS & set(options))
    if given:
        raise ConfigError(f"option {given[0]} has no effect on a further optimizer of a job, which takes plain means: leave it out, or "
                          "give one optimizer the parameters of both modules")


# Explicit, because the script may have changed torch's defaults.
_KIND = {"dtype": torch.float32, "device": "cpu"}
_COUNTS = {"dtype": torch.float64, "device": "cpu"}


class RestingSum:
    """A sum or a mean over all workers. A worker that rests, because it has finished or waits in `align`, contributes
    zeros until all workers rest.

    It has its own group, so that it runs in parallel to collectives of the script. All workers make it together.
    """

    def __init__(self, job, length, flags=0, compares=False):
        """length: length of the vectors. flags: number of flags that a mean combines besides its values. compares:
        `mean` gets a code that must be the same on all workers."""
        self._flags, self._compares = flags, compares
        self.last_weight = 0  # of all workers together, in the last mean
        self._group = job.open_group(range(job.size)) if job.size > 1 else None
        # Made now: a script that is ending cannot start a thread.
        self._resting = _Resting(self._group, length, 2 + flags + 2 * compares) if job.size > 1 else None
        if self._resting is not None:
            # The thread keeps the group, and thereby the job. Not at exit: workers may rest until they leave.
            weakref.finalize(self, self._resting.stop).atexit = False
        self._rests, self._ended = False, False

    def of(self, values):
        """Returns the sum of float32 vectors."""
        if self._group is None:
            return values
        self._total(0, bytes(self._flags))
        return self._group.allreduce(values.cpu().clone())

    def mean(self, values, weight, flags=b"", code=0):
        """Returns the weighted mean of float32 vectors in host memory, zeros if no worker has a weight; and the flags,
        a byte each, that are set on any worker with a weight. Errors: ConfigError on all workers if their codes
        differ."""
        total, flags = self._total(weight, flags if weight > 0 else bytes(len(flags)), code)
        self.last_weight = total
        share = values * (weight / total) if weight > 0 else torch.zeros_like(values)  # also for non-finite values
        return share if self._group is None else self._group.allreduce(share), flags

    def _total(self, weight, flags, code=0):
        """Returns the totals of weights and flags over all workers that do not rest."""
        if self._group is None:
            return weight, flags
        codes = _squared(code) if self._compares else ()
        facts = self._group.allreduce(torch.tensor([1, weight, *flags, *codes], **_COUNTS)).tolist()
        if self._compares and facts[0] * facts[-1] != facts[-2] ** 2:
            raise ConfigError("workers step with optimizers of different settings, such as the rates of a schedule that follows each "
                              "worker's own loss, and their models would differ: give all workers the same rates and settings")
        return facts[1], bytes(count > 0 for count in facts[2:2 + len(flags)])

    def rest(self):
        """Makes this worker rest: it takes no step until `wake`."""
        if self._resting is not None and not self._rests and not self._ended:
            self._rests = True
            self._resting.begin.set()

    def wake(self):
        """Waits until all workers rest. Errors: those of a collective."""
        if self._rests:
            self._rests = False
            self._resting.join_round()

    def end(self, all_rest=True):
        """As `wake`, for the last time; an error that has ended the job is reported by its training.

        all_rest: if False, some workers may never rest, and the thread takes part until this worker leaves the job.
        """
        self._ended = True
        if self._rests and all_rest:
            self._rests = False
            self._resting.end.wait()
        if self._resting is not None:
            self._resting.stop()
            if not self._rests:
                self._resting.thread.join()


def _squared(code):
    """Returns 16 bits of a code, and their square. For n workers, n times the sum of the squares equals the square of
    the sum only if all codes are equal; both are exact."""
    part = (code ^ code >> 16) & 0xFFFF
    return part, part * part


class _Resting:
    """A thread that contributes zeros during each rest."""

    def __init__(self, group, length, facts):
        self.begin, self.end = threading.Event(), threading.Event()
        self._group, self._length, self._facts, self._failure = group, length, facts, None
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="syncopate-resting", daemon=True)
        self.thread.start()

    def join_round(self):
        self.end.wait()
        self.end.clear()
        if self._failure is not None:
            raise self._failure

    def stop(self):
        """Ends the thread, and with it its group."""
        self._stopped = True
        self.begin.set()

    def _run(self):
        while self._failure is None:
            self.begin.wait()
            self.begin.clear()
            if self._stopped:
                break
            try:
                while self._group.allreduce(torch.zeros(self._facts, **_COUNTS))[0] > 0:
                    self._group.allreduce(torch.zeros(self._length, **_KIND))
            except Exception as error:  # noqa: BLE001 (`join_round` raises it)
                self._failure = error
            self.end.set()
