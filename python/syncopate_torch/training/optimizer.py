"""The optimizer of a training script; its steps are those of the job."""
import contextlib
import ctypes
import os
import time
import weakref

import torch

from syncopate_torch.core import library
from syncopate_torch.core.arguments import MOST_32, shared_object, shown, whole, whole_weight
from syncopate_torch.core.errors import ConfigError, Error
from syncopate_torch.core.process import after_waits, ending_error, is_success, wait_until_read
from syncopate_torch.core.torch_versions import ZERO_GRAD_SETS_TO_NONE, has_step_hooks, with_step_hooks
from syncopate_torch.training.batch_norm import SynchronizedLayers
from syncopate_torch.training.flat import expect_same_to_train, frozen_tensors
from syncopate_torch.training.replica import GradientHooks, Replica, scheme_of
from syncopate_torch.training.further_optimizer import RestingSum
from syncopate_torch.training.summary import Progress, row_of
from syncopate_torch.training.torch_sum import TorchSum
from syncopate_torch.training.torch_optimizers import (KeptRates, StandIn, StepSettings, default_rule, rates_of,
                                                       rule_of, settings_of)


class DistributedOptimizer(StandIn):
    """Replaces an optimizer of torch.optim in a training loop: `step` exchanges gradients or parameters with the other
    workers as the job's scheme requires. It is itself an optimizer of torch.optim and has the groups, the state and the
    defaults of the replaced one.

    The module starts with the parameters of worker 0. Until `finish`, its parameters and floating-point buffers are
    views of flat vectors; gradients become views in `step`. Those of bfloat16 and float16 keep their memory, and workers
    exchange their values in float32. A parameter that no worker's backward pass has used has no
    gradient and does not change. If only some workers used it, the mean counts the gradient of the others as zero. The
    learning rate is the optimizer's, and schedulers may change it at any time; if a parameter server takes the steps,
    the initial learning rate applies.

    Every worker makes one, once per job. It ends with `finish`, at the end of a `with` block, or at the end of the
    script: it waits for the loops of all workers, and their modules then hold the job's model. If an exception leaves
    the block or the script, it ends the job for all workers instead.

    scheme, options: as in `init`.
    batch_size:      samples in a usual step of each worker, the same on all workers, for a script that does not call
                     `partition_dataset`. A step with another number of samples passes it: `step(weight=n)`.
    on_round:        called with a dict of the values that this worker logs for each synchronization round
                     (workers/N.jsonl).
    Errors:          ConfigError for an unsuitable module, optimizer or option; on all workers, if the states that they
                     loaded (`Job.load_state_dict`) are of different moments, or only some workers loaded one.
    """

    def __init__(self, job, optimizer, module, scheme=None, options=None, batch_size=None, on_round=None):
        _expect_arguments(optimizer, module)
        # A second replica would take the module's tensors from the first one.
        library.call("training_may_start", job.handle)
        batch_size = None if batch_size is None else whole("batch_size", batch_size, MOST_32)
        super().__init__(optimizer)
        self._job = job  # keeps the job from leaving first
        self._module = module
        self._progress = Progress(on_round)
        self._end = None  # None until the training begins
        self._begun = {}  # initial settings of the job whose state is resumed here
        self._job_name = job.expect_same_moment()
        job.keep_state("optimizer", self)
        self._first_rates, self._first_settings = rates_of(optimizer), settings_of(optimizer)
        if job.size > 1:
            expect_same_to_train(job.everyone, module)
            for tensor in frozen_tensors(module):
                job.broadcast(tensor)
        self.scheme = scheme_of(job, scheme, options)
        given = self.scheme.options
        self.skips = given.get("on-nan") == "skip"
        same_scheme = self._begun.get("scheme", self.scheme.name) == self.scheme.name
        if job.size > 1 and self.scheme.shares_steps and not self._begun.get("shares_steps", same_scheme):
            # The earlier workers had separate optimizers: with one shared state all take the same steps.
            optimizer.load_state_dict(shared_object(job.everyone, optimizer.state_dict()))
        self._synchronized = SynchronizedLayers(job, module, self.scheme)
        self._weights = given.get("weights", "samples")
        self._batches_of_job = batch_size is None  # if False, the script has its own loader
        sums = None
        if job.size > 1 and self.scheme.in_rounds and given.get("aggregate") == "torch":
            sums = TorchSum(job, next(module.parameters()).device)
        self._replica = Replica(module, optimizer, self._progress if job.size > 1 else None,
                                alone=self._is_alone(given), skips=self.skips, sums=sums)
        self._sums = []
        self._further = []  # further optimizers of the job
        self._handle = self._replica.training = self._start(scheme, options, batch_size)
        self._progress.adds_own = job.size == 1 or self.scheme.pulls_some_steps
        # The replica lives until `_close`: other workers may continue and still use this worker's replica.
        self._end = weakref.finalize(self, _close, self._handle, self._replica, self._sums, self._progress,
                                     ending_error(), os.getpid())
        self._server_moves_all = library.call("training_server_moves_all", self._training)
        overlaps = library.call("training_overlaps", self._training)
        self._hooks = GradientHooks(job, self._replica, self._training, batch_size) if overlaps else None
        self._settings = StepSettings(optimizer) if self.shares_gradients else None
        self._rates = KeptRates(optimizer, self.scheme if job.size > 1 else None)
        if self.shares_gradients:
            # Means of gradients and of overflows. All workers make them now, because some may use them before others
            # do.
            self._gradients, self.overflows = self._mean_of_all(), RestingSum(job, 1)
            self._sums += [self._gradients, self.overflows]
        job.ends_first(self._end)

    def _is_alone(self, options):
        """True if gradients stay where they are. With overlap on, hooks report them as parts of a vector instead."""
        return library.call("is_alone", self._job.handle) == 1 and options.get("overlap") != "on"

    def _start(self, scheme, options, batch_size):
        self._job.expect_step_size(batch_size)
        array, count = library.options(options)
        rule, no_rule = rule_of(self.optimizer, self._replica.params)
        begins = {"scheme": self.scheme.name, "shares_steps": self.scheme.shares_steps, "rate": self._first_rates[0] or 0,
                  "rule": rule or default_rule(self.optimizer)}
        # A schedule may have changed rates and momenta by now, and workers may have taken different numbers of steps.
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
        """The handle of the C interface. Errors: ConfigError once the block has ended."""
        if not self._end.alive:
            raise ConfigError("the block of this optimizer has ended: it takes no further step")
        return self._handle

    def zero_grad(self, set_to_none=ZERO_GRAD_SETS_TO_NONE):
        """Removes the gradients of the module, or sets them to zero; the default is that of the installed torch."""
        self.expect_no_pass("zero_grad")
        self._replica.zero_gradients(set_to_none)

    def step(self, closure=None, weight=None):
        """Takes a step of this worker with the gradients that `backward` has left in the module.

        weight: samples of the step: the weight of its gradient in a mean over workers [the samples of the last batch of
                the loop over `job.partition_dataset`; with the script's own loader those of a usual step, and required
                with a `global_batch`; with overlap on those with which the backward pass began].
        Returns the result of `closure`, if any, which computes the gradients.
        Errors: the error that ended the job; Cancelled once the user has ended it; ConfigError after `finish` and for a
                module that has changed.
        """
        take = self._step_with_hooks if has_step_hooks(self) else self._step_of_loop
        return take(closure, weight)

    # Keeps torch from wrapping it for hooks and its profiler. The wrapper costs 30 µs per step, in addition to the one
    # of the inner torch.optim optimizer.
    step.hooked = True

    def _step_of_loop(self, closure, weight):
        loss = self.loss_of(closure)
        if self._hooks is not None:
            weight = self._hooks.end_pass(weight)
        weight = self.weight_of_step(weight)
        self._expect_rule()
        self._rates.expect_kept()
        self._say_settings()
        self._replica.collect()
        if weight > 0:
            self._expect_gradients()
        self._say_gradients()
        rounds = self._progress.rounds
        self._progress.took_step(self._take(weight), is_in_round=self._progress.rounds > rounds)
        self._rates.keep()
        return loss

    _step_with_hooks = with_step_hooks(_step_of_loop)

    def _take(self, weight):
        """Returns the samples of the step: 0 if its gradient is skipped because it is not finite."""
        if self._replica.is_alone:
            finite = self._replica.grads.is_finite()
            self._replica.called(library.call, "training_step_alone", self._training, weight, finite)
        else:
            finite = not self._replica.skips or self._replica.grads.are_all_finite()
            self._replica.called(library.call, "training_step", self._training, weight)
        return weight if finite else 0

    @staticmethod
    def loss_of(closure):
        """Calls the closure of `step`, if there is one, and returns its result."""
        if closure is None:
            return None
        _expect_closure(closure)
        with torch.enable_grad():
            return closure()

    def align(self, place="align"):
        """Waits until all workers have called it, even after different numbers of steps. Use it before a test, a
        checkpoint or another collective in the middle of training, for example after an epoch.

        While it waits, this worker takes part in the rounds of the others without samples. All replicas are equal
        afterwards, except in `local`, `downpour`, `easgd` and `nbssgd` with `commit` `racy`, where each worker keeps
        its own. Gradients do not change, so it may be called between the passes of a step.

        place: a name for this call, the same on all workers.
        Errors: ConfigError if workers pass different names; those of `step`.
        """
        self.expect_no_pass("align")
        self.expect_under_way()
        if self._job.size == 1:
            return
        try:
            for each in self._sums:
                each.rest()
            self._replica.align(self._training, place)
            for each in self._sums:
                each.wake()
            for each in self._further:
                each.become_equal()
        except BaseException as error:
            if not isinstance(error, Error):  # raised by a signal handler during the call
                self.abandon(error)
            raise
        if self.scheme.pulls_some_steps:
            own = torch.tensor([self._progress.own_samples], dtype=torch.int64)
            self._progress.samples = int(self._job.allreduce(own))
        self._progress.alignments += 1
        self._progress.follow()
        self._rates.may_change()

    @property
    def is_under_way(self):
        """True from the beginning of the training to its end."""
        return self._end is not None and self._end.alive and not self._progress.loop_has_ended

    @property
    def leading(self):
        return self

    def holds(self, tensors):
        """True if any of the tensors is a parameter or buffer of one of the job's optimizers."""
        return any(map(self._replica.holds, tensors)) or any(each.has(tensors) for each in self._further)

    def expect_under_way(self):
        """Errors: ConfigError once the training has ended."""
        if not self.is_under_way:
            raise ConfigError("the loop has finished: the optimizers of the job take no further step")

    def take_further(self, optimizer, sums):
        """Adds another optimizer of the job; its `sums` rest when those of this one do."""
        self._further.append(optimizer)
        self._sums += sums

    def trains(self, tensors):
        """True if training is under way with other workers and any of the tensors belongs to the replica."""
        return self.is_under_way and self._job.size > 1 and any(map(self._replica.holds, tensors))

    @contextlib.contextmanager
    def replica_set(self, tensors):
        """Within the block all workers get the current `tensors` of worker 0; training continues from these values."""
        values = [tensor.clone() for tensor in tensors]
        self.align("broadcast_parameters")  # may change the tensors
        for tensor, value in zip(tensors, values):
            tensor.copy_(value)
        yield
        self._replica.called(library.call, "training_take_replica", self._training)

    @property
    def samples(self):
        """Samples of all workers together so far, as known to this worker since its last synchronization round."""
        return self._progress.all_samples

    def no_sync(self):
        """Returns a context for all backward passes of a step except the last. Gradients accumulate until `step` in any
        case; with option `overlap` `on`, the gradients of a pass outside of the context are sent at once."""
        return contextlib.nullcontext() if self._hooks is None else self._hooks.no_sync()

    def expect(self, weight):
        """Sets the weight of the next step before its backward pass. Needed with option `overlap` `on` if the weight is
        not the number of samples in the batches of `job.partition_dataset`."""
        if self._hooks is not None:
            self._hooks.expect(whole_weight(weight))

    @property
    def batch_size(self):
        """Samples in a usual step of this worker."""
        return library.call("training_batch_size", self._training)

    def weight_of_step(self, weight):
        """Returns the weight that the script passed, or the default if it is None."""
        if weight is None:
            batch = self._job.batch if self._batches_of_job else None
            if batch is None and self._job.divides_by_speed:
                raise ConfigError("the parts of a global batch have different sizes: with a loader of the script's own pass the "
                                  "samples of each batch, step(weight=len(x))")
            weight = self.batch_size if batch is None else batch[1]
        return whole_weight(weight)

    @property
    def shares_gradients(self):
        """True if a step takes the mean gradient of all workers, False if each worker takes its own steps."""
        return bool(library.call("training_shares_gradients", self._training))

    def synchronize(self, weight=None):
        """Replaces gradients by those that the next step will use, to clip or inspect them.

        If workers share gradients, this is their mean, weighted as in `step`; all workers call it together, and it
        costs one more exchange. Otherwise gradients do not change. Then call `step` with the same weight.
        Errors: ConfigError with option `overlap` `on`, which sends gradients earlier.
        """
        self.expect_no_pass("synchronize")
        if self._progress.loop_has_ended:
            raise ConfigError("the loop has finished: call synchronize before the last step")
        self._replica.collect()
        if not self.shares_gradients:
            return
        weight = self.weight_of_step(weight)
        # With a loss scale all workers must see non-finite values, because the scaler decides about the step.
        if not self._job.scales_loss and not self._replica.grads.are_all_finite():
            if not self._replica.skips:
                self._take(weight)  # raises the error in the name of this worker
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
        """Returns the weight of a step of this worker in the job's mean."""
        if self._weights == "data":
            raise ConfigError("synchronize knows no weights by shares of the data: give the job weights samples or uniform")
        return min(samples, 1) if self._weights == "uniform" else samples

    def follow_samples(self, scheduler):
        """Calls `scheduler.follow(samples)` after each step, for `Job.scheduler`."""
        self._progress.schedulers.append(scheduler)

    def expect_no_pass(self, what):
        if self._hooks is not None:
            self._hooks.expect_none_under_way(what)

    def _say_settings(self):
        """Passes changed settings to the library, which compares them between workers if all take the same steps."""
        changed = self._settings.changed() if self._settings is not None else None
        if changed is not None:
            library.call("training_use_settings", self._training, *changed)

    def _say_gradients(self):
        """Reports to the library which parameters have a gradient in this step: it changes no others."""
        changed = None if self._replica.is_alone else self._replica.changed_gradients()
        if changed is not None:
            library.call("training_has_gradients", self._training, changed)

    def _expect_gradients(self):
        """Errors: ConfigError for a parameter that a server would change without a gradient."""
        unused = self._replica.first_without_gradient() if self._server_moves_all else None
        if unused is not None:
            raise ConfigError(f"no backward pass of this step has used {unused}, and the parameter server takes steps of the "
                              "whole model: its rule, by a momentum or a weight decay, would move it without a gradient; choose "
                              "a scheme without a server, such as esync, or SGD without both")

    def _expect_to_train(self, params):
        """Checks parameters before they are added to a group. Errors: ConfigError."""
        self._replica.expect_trained(params)

    def _expect_rule(self):
        # In this order: reading a rate from a tensor on a device would make each step wait for the device.
        if not library.call("training_server_steps", self._training):
            return
        if settings_of(self.optimizer) != self._first_settings:
            raise ConfigError("the parameter server takes the optimizer's steps by its rule of the beginning: what the script "
                              "changes of it, such as weight_decay or momentum, has no effect; choose a scheme without a "
                              "server, such as esync")
        if rates_of(self.optimizer) != self._first_rates:
            raise ConfigError("the parameter server takes the optimizer's steps at the rate of the beginning: a learning "
                              "rate that the script changes has no effect; give the job a schedule, by the options "
                              "schedule, schedule-step and schedule-factor, or choose a scheme without a server, such as "
                              "esync")

    def finish(self):
        """Ends this worker's steps and waits for the loops of all workers. The module then holds the job's model, with
        the steps of all workers, in its own memory. Errors: the error that ended the job."""
        if self._end is None or not self._end.alive:
            return
        if self._hooks is not None:
            self._hooks.remove()
        for each in self._sums:
            each.rest()
        self._progress.loop_has_ended = True
        self._replica.called(library.call, "training_finish", self._training)
        self._progress.follow()
        for each in self._sums:
            each.end()
        for each in self._further:
            each.end()
        self._further.clear()  # they refer to this object
        self._synchronized.release()
        self._replica.release()

    @property
    def steps_taken(self):
        return self._progress.steps

    def summary_row(self):
        """Returns the statistics of this worker for `Job.summary`."""
        progress = self._progress
        return row_of(self._job.rank, progress.steps, progress.own_samples, progress.rounds,
                      time.monotonic() - progress.since, progress.event)

    def job_state(self):
        """Returns the module, the optimizer and the samples so far, for `Job.state_dict`."""
        return {**self.saved_with(self._module), "samples": self.samples, "begun": self._begun, "moment": self._moment()}

    def _moment(self):
        """Returns values that are equal in the states of all workers if they were saved at the same moment."""
        moment = {"job": self._job_name, "alignments": self._progress.alignments}
        return {**moment, "round": self._progress.round} if self.scheme.steps_together else moment

    def take_job_state(self, state, _same_size):
        """Loads the state of an earlier job before this one begins to train."""
        self._module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._progress.earlier_samples = state["samples"]
        self._begun = state.get("begun", {})

    def abandon(self, error):
        """Ends the job for all workers: this worker leaves its loop by an exception, and the others get its message.
        Has no effect before the training has begun and once the block has ended."""
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
    """Errors: ConfigError for arguments of other types, for example if the module is passed before the optimizer."""
    if hasattr(optimizer, "param_groups") and isinstance(module, torch.nn.Module):
        return
    raise ConfigError("DistributedOptimizer takes an optimizer of torch.optim and then its module, found "
                      f"{type(optimizer).__name__} and {type(module).__name__}: job.DistributedOptimizer(optimizer, model)")


def _expect_closure(closure):
    """Errors: ConfigError if the number of samples is passed as the closure."""
    if not callable(closure):
        raise ConfigError(f"step takes a function that computes the loss first, found {shown(closure)}: to say the samples of "
                          "the step, call step(weight=n)")


@after_waits
def _close(training, replica, sums, progress, earlier_error, process):
    """Runs at the end of the script, or of the optimizer's life."""
    if os.getpid() != process:
        return  # forked: the threads that end the training do not exist here
    error = ending_error()
    if error is not None and error is not earlier_error:
        wait_until_read()
        replica.abandon(error)
    if not replica.is_abandoned:  # otherwise no worker waits for this one, and some may never rest
        progress.loop_has_ended = True
        replica.tells = True
        for each in sums:
            each.rest()
    all_rest = not replica.is_abandoned and _finish(training, replica)
    replica.training = None
    library.call("training_close", training)
    if replica.sums is not None:
        replica.sums.close()
    for each in sums:
        each.end(all_rest)


def _finish(training, replica):
    """Finishes the training of a script that did not call `finish`. Returns False if the job ended with an error."""
    try:
        with replica.catching():
            library.call("training_finish", training)
    except BaseException as error:  # also KeyboardInterrupt
        replica.report(error)
        return False
    return True
