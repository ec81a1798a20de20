"""The optimizer of a training script, whose steps are those of the job."""
import contextlib
import ctypes
import os
import time
import weakref

import torch

from syncopate_torch.core import library
from syncopate_torch.core.arguments import MOST_32, shown, whole, whole_weight
from syncopate_torch.core.errors import ConfigError, Error
from syncopate_torch.core.objects import shared_object
from syncopate_torch.core.process import SIGNALS, after_waits, ending_error, is_success, wait_until_read
from syncopate_torch.core.torch_versions import ZERO_GRAD_SETS_TO_NONE, has_step_hooks, with_step_hooks
from syncopate_torch.training.alignment import Alignment
from syncopate_torch.training.batch_norm import SynchronizedLayers
from syncopate_torch.training.flat import frozen_tensors
from syncopate_torch.training.module_tensors import expect_same_to_train
from syncopate_torch.training.overlap import GradientHooks
from syncopate_torch.training.replica import Replica
from syncopate_torch.training.resting_sum import RestingSum
from syncopate_torch.training.scheme import scheme_of
from syncopate_torch.training.summary import Progress, row_of
from syncopate_torch.training.torch_optimizers import StandIn, StepSettings, rule_of, settings_of, default_rule


class DistributedOptimizer(StandIn):
    """Takes the place of an optimizer of torch.optim in a training loop: `step` exchanges gradients or parameters with
    the other workers as the job's scheme says. It is an optimizer of torch.optim, with the groups, the state and the
    defaults of the one that it takes the place of.

    The module starts with the parameters of worker 0. Its parameters and floating buffers become views of flat vectors,
    until `finish`, and gradients do so in `step`. A parameter that no worker's pass has used has no gradient, and does not
    move; where some workers have used it, it moves by the mean in which the gradient of the others is zero. The learning
    rate is that of the optimizer, which schedulers may change at any time; where a parameter server takes the steps, it is
    that of the beginning.

    Every worker makes one, once a job, and is done with `finish`, at the end of a `with` block, or at the end of the
    script. This waits for the loops of all workers, whose modules then hold the model of the job; after an exception,
    which leaves the block or the script, it ends the job for all instead.

    scheme, options: as in `init`.
    batch_size:      samples of a usual step of each worker, the same on all, in a script that does not call
                     `partition_dataset`. A step of another number says so: `step(weight=n)`.
    on_round:        gets a dict of what this worker logs of each synchronization round (workers/N.jsonl).
    Errors:          ConfigError: what the module, the optimizer or the options lack; on all workers, where they have
                     loaded states (`Job.load_state_dict`) of several moments, or some of them none.
    """

    def __init__(self, job, optimizer, module, scheme=None, options=None, batch_size=None, on_round=None):
        _expect_arguments(optimizer, module)
        # A second replica would take the tensors of the module away from the first one.
        library.call("training_may_start", job.handle)
        batch_size = None if batch_size is None else whole("batch_size", batch_size, MOST_32)
        super().__init__(optimizer)
        self._job = job  # leaves after this
        self._module = module
        self._progress = Progress(on_round)
        self._end = None  # until the training begins
        self._begun = {}  # what the job began with, of a state that goes on here
        self._job_name = job.expect_same_moment()
        job.keep_state("optimizer", self)
        self._first_rates, self._first_settings = _rates_of(optimizer), settings_of(optimizer)
        if job.size > 1:
            expect_same_to_train(job.everyone, module)
            for tensor in frozen_tensors(module):
                job.broadcast(tensor)
        self.scheme = scheme_of(job, scheme, options)
        given = self.scheme.options
        self.skips = given.get("on-nan") == "skip"
        same_scheme = self._begun.get("scheme", self.scheme.name) == self.scheme.name
        if job.size > 1 and self.scheme.shares_steps and not self._begun.get("shares_steps", same_scheme):
            # The earlier workers had optimizers of their own: one that all have now makes the same steps.
            optimizer.load_state_dict(shared_object(job.everyone, optimizer.state_dict()))
        self._synchronized = SynchronizedLayers(job, module, self.scheme)
        self._weights = given.get("weights", "samples")
        self._batches_of_job = batch_size is None  # else the script has a loader of its own
        self._replica = Replica(module, optimizer, self._progress.take_round if job.size > 1 else None,
                                alone=self._is_alone(given), skips=self.skips)
        self._sums = []
        self._further = []  # optimizers of the job
        self._handle = self._replica.training = self._start(scheme, options, batch_size)
        self._progress.adds_own = job.size == 1 or self.scheme.pulls_some_steps
        self._alignment = Alignment(job, weakref.WeakMethod(self._step_without_samples), self._progress, self.scheme)
        # The replica lives until then: others may go on, and this worker's replica with them.
        self._end = weakref.finalize(self, _close, self._handle, self._replica, self._sums, self._alignment, self._progress,
                                     ending_error(), os.getpid())
        self._server_moves_all = library.call("training_server_moves_all", self._training)
        overlaps = library.call("training_overlaps", self._training)
        self._hooks = GradientHooks(job, self._replica, self._training, batch_size) if overlaps else None
        self._settings = StepSettings(optimizer) if self.shares_gradients else None
        if self.shares_gradients:
            # Of gradients, and of overflows: made now, with all workers, since some may use them before
            # others do.
            self._gradients, self.overflows = self._mean_of_all(), RestingSum(job, 1)
            self._sums += [self._gradients, self.overflows]
        job.ends_first(self._end)
        job.before_samples = weakref.WeakMethod(self._alignment.resume)

    def _is_alone(self, options):
        """Whether gradients stay where they are; hooks of the overlap report them as parts of a vector."""
        return library.call("is_alone", self._job.handle) == 1 and options.get("overlap") != "on"

    def _start(self, scheme, options, batch_size):
        self._job.expect_step_size(batch_size)
        array, count = library.options(options)
        rule, no_rule = rule_of(self.optimizer, self._replica.params)
        begins = {"scheme": self.scheme.name, "shares_steps": self.scheme.shares_steps, "rate": self._first_rates[0] or 0,
                  "rule": rule or default_rule(self.optimizer)}
        # Rates and momenta of a schedule may differ by now, as may the numbers of steps that each worker has taken.
        self._begun = self._begun if self._begun.get("scheme") == self.scheme.name else begins
        rules, rule_count = library.options(self._begun["rule"])
        settings = library.TrainingOptions(
            size=ctypes.sizeof(library.TrainingOptions), scheme=library.text(scheme), options=array, option_count=count,
            batch_size=batch_size or 0, learning_rate=self._begun["rate"], rule=rules, rule_count=rule_count,
            has_no_rule=library.text(no_rule))
        if self._replica.round_call is not None:
            settings.on_round = self._replica.round_call
        return self._replica.called(library.made, "training_start", self._job.handle,
                                    ctypes.byref(self._replica.description()), ctypes.byref(settings))

    @property
    def _training(self):
        """Of the C interface. Errors: ConfigError, once the block has ended."""
        if not self._end.alive:
            raise ConfigError("the block of this optimizer has ended: it takes no further step")
        return self._handle

    def zero_grad(self, set_to_none=ZERO_GRAD_SETS_TO_NONE):
        """Removes the gradients of the module, as torch does from 2.0 on unless it is told otherwise, or sets them to zero."""
        self.expect_no_pass("zero_grad")
        self._replica.zero_gradients(set_to_none)

    def step(self, closure=None, weight=None):
        """A step of this worker with the gradients that `backward` has left in the module.

        weight: samples of the step, which its gradient weighs in a mean over workers [those of the batch that the loop
                over `job.partition_dataset` took last; with a loader of one's own those of a usual step; with overlap on
                those with which its pass began].
        Returns what `closure`, if any, returns, which computes the gradients.
        Errors: the error that ended the job; Cancelled, once the user has ended it; ConfigError, after `finish` and for
        a module that has changed.
        """
        take = self._step_with_hooks if has_step_hooks(self) else self._step_of_loop
        return take(closure, weight)

    # torch would wrap it, for hooks and for its profiler, which costs 30 µs a step, as much again as for the optimizer of
    # torch.optim inside.
    step.hooked = True

    def _step_of_loop(self, closure, weight):
        loss = self.loss_of(closure)
        if self._hooks is not None:
            weight = self._hooks.end_pass(weight)
        weight = self.weight_of_step(weight)
        self._expect_rule()
        self._say_settings()
        self._alignment.resume()
        self._replica.collect()
        if weight > 0:
            self._expect_gradients()
        self._say_gradients()
        rounds = self._progress.rounds
        self._progress.took_step(self._take(weight), is_in_round=self._progress.rounds > rounds)
        return loss

    _step_with_hooks = with_step_hooks(_step_of_loop)

    def _take(self, weight):
        """Returns the samples of the step: none where its gradient is skipped, since it is not finite."""
        if self._replica.is_alone:
            finite = self._replica.grads.is_finite()
            self._replica.called(library.call, "training_step_alone", self._training, weight, finite)
        else:
            finite = not self._replica.skips or self._replica.grads.are_all_finite()
            self._replica.called(library.call, "training_step", self._training, weight)
        return weight if finite else 0

    @staticmethod
    def loss_of(closure):
        """What a closure of `step` returns, if there is one."""
        if closure is None:
            return None
        _expect_closure(closure)
        with torch.enable_grad():
            return closure()

    def align(self, place="align"):
        """Returns when all workers have called it, whatever their numbers of steps: before a test, a checkpoint or
        another collective in the middle of training, such as after an epoch.

        Meanwhile this worker takes part in the rounds of the others, without samples. All replicas are equal afterwards,
        but in `local`, `downpour`, `easgd` and `nbssgd` with `commit` `racy`, where each worker keeps what it has.
        Gradients stay as they are, so it may come between the passes of a step.

        place: a name for this call, the same on all workers.
        Errors: ConfigError, when workers call it with several names; those of `step`.
        """
        self.expect_no_pass("align")
        if self._job.size == 1:
            return
        try:
            with self._replica.gradients_kept():
                for each in self._sums:
                    each.rest()
                self._alignment.align(place)
                for each in self._sums:
                    each.wake()
                for each in self._further:
                    each.become_equal()
        except BaseException as error:
            if not isinstance(error, Error):  # of the handler of a signal, in the middle of it
                self.abandon(error)
            raise
        self._progress.alignments += 1
        self._progress.follow()

    @property
    def is_under_way(self):
        """True from the beginning of the training to its end."""
        return self._end is not None and self._end.alive and not self._progress.loop_has_ended

    @property
    def leading(self):
        return self

    def holds(self, tensors):
        """Whether some of them are parameters or buffers of one of the job's optimizers."""
        return any(map(self._replica.holds, tensors)) or any(each.has(tensors) for each in self._further)

    def expect_under_way(self):
        """Errors: ConfigError, once the training has ended."""
        if not self.is_under_way:
            raise ConfigError("the loop has finished: the optimizers of the job take no further step")

    def take_further(self, optimizer, sums):
        """Another optimizer of the job, whose `sums` rest where this one's do."""
        self._further.append(optimizer)
        self._sums += sums

    def trains(self, tensors):
        """Whether some of them are what this job trains together with other workers, in the middle of training."""
        return self.is_under_way and self._job.size > 1 and any(map(self._replica.holds, tensors))

    @contextlib.contextmanager
    def replica_set(self, tensors):
        """In the block all workers get the values that `tensors` have now on worker 0; training goes on from these."""
        values = [tensor.clone() for tensor in tensors]
        self.align("broadcast_parameters")  # which may change them
        for tensor, value in zip(tensors, values):
            tensor.copy_(value)
        yield
        self._replica.called(library.call, "training_take_replica", self._training)

    def _step_without_samples(self):
        self._say_settings()
        self._replica.collect()
        self._say_gradients()
        self._take(0)
        self._replica.zero_gradients()
        self._progress.follow()  # at the rate of the others, whose gradients this worker applies

    @property
    def samples(self):
        """Samples of all workers together, so far, as this worker has learned of them in its last synchronization round."""
        return self._progress.all_samples

    def no_sync(self):
        """A context for the backward passes of a step but its last one. Gradients add up until `step` anyway; with option
        `overlap` `on` those of a pass outside of it leave at once."""
        return contextlib.nullcontext() if self._hooks is None else self._hooks.no_sync()

    def expect(self, weight):
        """Says the weight of the coming step before its backward pass, where option `overlap` is `on` and it is not the
        number of samples in the batches of `job.partition_dataset`."""
        if self._hooks is not None:
            self._hooks.expect(whole_weight(weight))

    @property
    def batch_size(self):
        """Samples of a usual step of this worker."""
        return library.call("training_batch_size", self._training)

    def weight_of_step(self, weight):
        """As the script says it, or, where that is None, as is usual."""
        if weight is None:
            batch = self._job.batch if self._batches_of_job else None
            weight = self.batch_size if batch is None else batch[1]
        return whole_weight(weight)

    @property
    def shares_gradients(self):
        """True where a step takes the mean gradient of all workers, False where each has steps of its own."""
        return bool(library.call("training_shares_gradients", self._training))

    def synchronize(self, weight=None):
        """Replaces gradients by those that the next step takes, to clip them or to look at them before it.

        Where workers share gradients that is their mean, weighted as in `step`, which all workers ask for together, and
        which costs one more exchange; elsewhere they stay as they are. Then call `step` with the same weight.
        Errors: ConfigError, with option `overlap` `on`, where gradients leave before.
        """
        self.expect_no_pass("synchronize")
        if self._progress.loop_has_ended:
            raise ConfigError("the loop has finished: call synchronize before the last step")
        self._replica.collect()
        if not self.shares_gradients:
            return
        weight = self.weight_of_step(weight)
        # Where a loss scale is used all workers have to see that values are not finite: it decides.
        if not self._job.scales_loss and not self._replica.grads.are_all_finite():
            if not self._replica.skips:
                self._take(weight)  # which refuses it, in the name of this worker
            self._replica.grads.skip()
            weight = 0
        values = self._replica.grads.vector.values
        with torch.no_grad():
            mean, flags = self._gradients.mean(values.cpu(), self.weight_in_mean(weight), self._replica.grads.flags())
            values.copy_(mean)
            self._replica.grads.use(flags)

    def _mean_of_all(self):
        params = self._replica.params
        return RestingSum(self._job, len(params.vector.values), flags=len(params.tensors))

    def weight_in_mean(self, samples):
        """Of a step of this worker, in the mean of its job."""
        if self._weights == "data":
            raise ConfigError("synchronize knows no weights by shares of the data: give the job weights samples or uniform")
        return min(samples, 1) if self._weights == "uniform" else samples

    def follow_samples(self, scheduler):
        """Calls `scheduler.follow(samples)` after each step, as `Job.scheduler` needs it."""
        self._progress.schedulers.append(scheduler)

    def expect_no_pass(self, what):
        if self._hooks is not None:
            self._hooks.expect_none_under_way(what)

    def _say_settings(self):
        """The library compares them with those of the other workers, where all take the same steps."""
        changed = self._settings.changed() if self._settings is not None else None
        if changed is not None:
            library.call("training_use_settings", self._training, *changed)

    def _say_gradients(self):
        """Of which parameters the library has one in this step: it moves no others."""
        changed = None if self._replica.is_alone else self._replica.changed_gradients()
        if changed is not None:
            library.call("training_has_gradients", self._training, changed)

    def _expect_gradients(self):
        """Errors: ConfigError, for a parameter that a server would move without a gradient."""
        unused = self._replica.first_without_gradient() if self._server_moves_all else None
        if unused is not None:
            raise ConfigError(f"no backward pass of this step has used {unused}, and the parameter server takes steps of the "
                              "whole model: its rule, by a momentum or a weight decay, would move it without a gradient; choose "
                              "a scheme without a server, such as esync, or SGD without both")

    def _expect_to_train(self, params):
        """Before they come into a group. Errors: ConfigError."""
        self._replica.expect_trained(params)

    def _expect_rule(self):
        # In this order: to read a rate in a tensor on a device would make each step wait for the device.
        if not library.call("training_server_steps", self._training):
            return
        if settings_of(self.optimizer) != self._first_settings:
            raise ConfigError("the parameter server takes the optimizer's steps by its rule of the beginning: what the script "
                              "changes of it, such as weight_decay or momentum, has no effect; choose a scheme without a "
                              "server, such as esync")
        if _rates_of(self.optimizer) != self._first_rates:
            raise ConfigError("the parameter server takes the optimizer's steps at the rate of the beginning: a learning "
                              "rate that the script changes has no effect; give the job a schedule, by the options "
                              "schedule, schedule-step and schedule-factor, or choose a scheme without a server, such as "
                              "esync")

    def finish(self):
        """This worker takes no further step. Waits for the loops of all workers; then the module holds the model of the
        job, with the steps of all, in memory of its own. Errors: the error that ended the job."""
        if self._end is None or not self._end.alive:
            return
        if self._hooks is not None:
            self._hooks.remove()
        self._alignment.resume()
        for each in self._sums:
            each.rest()
        self._progress.loop_has_ended = True
        self._replica.called(library.call, "training_finish", self._training)
        for each in self._sums:
            each.end()
        for each in self._further:
            each.end()
        self._further.clear()  # which lead back here
        self._synchronized.release()
        self._replica.release()

    @property
    def steps_taken(self):
        return self._progress.steps

    def summary_row(self):
        """What this worker has done, for `Job.summary`."""
        progress = self._progress
        return row_of(self._job.rank, progress.steps, progress.own_samples, progress.rounds,
                      time.monotonic() - progress.since, progress.event)

    def job_state(self):
        """The module, the optimizer and the samples so far, for `Job.state_dict`."""
        return {**self.saved_with(self._module), "samples": self.samples, "begun": self._begun, "moment": self._moment()}

    def _moment(self):
        """What the states of all workers have in common that are of one moment."""
        moment = {"job": self._job_name, "alignments": self._progress.alignments}
        return {**moment, "round": self._progress.round} if self.scheme.steps_together else moment

    def take_job_state(self, state, _same_size):
        """Of an earlier job, before this one begins to train."""
        self._module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._progress.earlier_samples = state["samples"]
        self._begun = state.get("begun", {})

    def abandon(self, error):
        """Ends the job for all workers: this one leaves its loop by an exception, whose message the others get. Nothing
        happens once the block has ended, and before the training has begun."""
        if self._end is not None and self._end.alive:
            self._replica.abandon(error)

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        if error is None or is_success(error):
            self.finish()
        else:
            self.abandon(error)
        self._end()


def _expect_arguments(optimizer, module):
    """Errors: ConfigError, for other things, such as the module before the optimizer."""
    if hasattr(optimizer, "param_groups") and isinstance(module, torch.nn.Module):
        return
    raise ConfigError("DistributedOptimizer takes an optimizer of torch.optim and then its module, found "
                      f"{type(optimizer).__name__} and {type(module).__name__}: job.DistributedOptimizer(optimizer, model)")


def _expect_closure(closure):
    """Errors: ConfigError, for the number of samples in its place."""
    if not callable(closure):
        raise ConfigError(f"step takes a function that computes the loss first, found {shown(closure)}: to say the samples of "
                          "the step, call step(weight=n)")


def _rates_of(optimizer):
    """Numbers, also where a group holds its rate in a tensor, which changes in place."""
    rates = [group.get("lr") for group in optimizer.param_groups]  # some optimizers find theirs themselves
    return [None if rate is None else float(rate) for rate in rates]


@after_waits
def _close(training, replica, sums, alignment, progress, earlier_error, process):
    """At the end of the script, or of the optimizer's life."""
    if os.getpid() != process:
        return  # forked: the threads that end it are missing here
    error = ending_error()
    if error is not None and error is not earlier_error:
        wait_until_read()
        replica.abandon(error)
    if not replica.is_abandoned:  # else nobody waits for this worker, and some may never rest
        progress.loop_has_ended = True
        replica.tells = True
        for each in sums:
            each.rest()
    alignment.leave()
    all_rest = not replica.is_abandoned and _finish(training, replica)
    replica.training = None
    library.call("training_close", training)
    for each in sums:
        each.end(all_rest)


def _finish(training, replica):
    """At the end of a script that does not call `finish`; else it does nothing. False: the job has ended by an error."""
    try:
        with SIGNALS.of_training(replica.abandon):
            library.call("training_finish", training)
    except BaseException as error:  # also KeyboardInterrupt
        replica.report(error)
        return False
    return True
