"""The model that a scheme trains: the flat vectors of a module, and a step of its optimizer. The scheme itself, as the
library describes it, and gradients that leave during the backward pass: option `overlap` `on` of scheme ssgd."""
import contextlib
import ctypes
import dataclasses
import json
import sys
import weakref

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.process import SIGNALS, exit_report, report_and_exit
from syncopate_torch.training.converted import ConvertedGradients, ConvertedTensors, has_lower_precision
from syncopate_torch.training.flat import (FlatTensors, WrappedTensors, expect_apart, expect_exchanged, trained_tensors,
                                           untrained_tensors)
from syncopate_torch.training.gradients import FlatGradients, OwnGradients
from syncopate_torch.training.torch_optimizers import expect_whole_steps, refuse_other_steps


class Replica:
    """A module and its optimizer, used by the callbacks of the library.

    Parameters and float32 buffers of the module become views of flat vectors, and so do gradients if other workers get
    them; of a module with bfloat16 or float16 the vectors hold converted values. The library runs callbacks during
    `called`, on the thread of that call, which raises an exception of a callback.

    progress: the `Progress` of a job of several workers, whose rounds and samples it follows.
    alone:    True if no other process gets the gradients.
    skips:    True if a non-finite gradient must change nothing.
    sums:     the `TorchSum` of option `aggregate` `torch`, or None.
    Errors:   ConfigError for a module without trained parameters, on several devices, or with trained parameters of another
              type, and for an optimizer of other parameters.
    """

    def __init__(self, module, optimizer, progress=None, alone=False, skips=False, sums=None):
        trained = trained_tensors(module)
        expect_parameters(optimizer, trained)
        expect_exchanged(trained)
        untrained = untrained_tensors(module)
        expect_apart(trained + untrained)
        device = trained[0][1].device
        self.optimizer = optimizer
        self._progress = progress
        self.takes_step = False  # True during a step that the scheme takes
        refuse_other_steps(optimizer, self)
        self._wrapped = WrappedTensors(module, optimizer)
        untrained = untrained if skips or not alone else []
        self.has_lower_precision = has_lower_precision(trained)
        if self.has_lower_precision:
            self.params, gradients = ConvertedTensors(trained, device), ConvertedGradients
        else:
            self.params, gradients = FlatTensors(trained, device), FlatGradients
        looks_at_all = skips or self.has_lower_precision
        self.grads = OwnGradients(self.params, looks_at_all) if alone else gradients(self.params, device)
        self.buffers = (ConvertedTensors(untrained, device) if has_lower_precision(untrained) else
                        FlatTensors(untrained, device, may_resize=True))
        self.is_alone = alone
        self.skips = skips
        self.sums = sums
        #: The library requests gradients only in a job of several workers.
        self._held = {library.PARAMETERS: self.params, library.BUFFERS: self.buffers, library.GRADIENTS: self.grads}
        self.is_abandoned = False  # the script has ended the job with an error
        self.tells = False  # reports errors of callbacks, when no call of the script can raise them
        self.training = None  # the handle of the C interface, while there is one
        self._has_raised = False  # the error of the training was raised in the script or reported to its user
        self._is_released = False
        self._flags = bytes([1]) * len(self.params.tensors)  # the flags that the library has
        self._failure = None
        self._reason = ctypes.c_char_p()  # the library reads it after each callback
        self._callbacks = []
        # Kept alive: the library calls them as long as it trains.
        self._view_call = library.View(self._callback(self._view))
        self._store_call = library.Store(self._callback(self._store))
        self._move_call = library.Move(self._callback(self._move))
        self._step_call = library.TakeStep(self._callback(self._take_step))
        self._use_call = library.UseGradients(self._callback(self._use_gradients))
        self.round_call = None
        if progress is not None:  # its errors end this worker, but not the round
            self.round_call = library.OnRound(self._callback(lambda line: progress.take_round(json.loads(line)), may_fail=False))

    @property
    def is_training(self):
        return self.training is not None and not self._is_released

    def description(self):
        """Returns the description for the library."""
        own = library.Replica(size=ctypes.sizeof(library.Replica), parameter_count=len(self.params.vector.values),
                              buffer_count=len(self.buffers.vector.values), view=self._view_call, take_step=self._step_call)
        own.reason = ctypes.pointer(self._reason)
        is_on_cpu = self.params.vector.values.device.type == "cpu"
        if is_on_cpu and not self.is_alone:
            own.move = self._move_call
        if not (own.move and self.params.are_views and self.buffers.are_views):
            own.store = self._store_call
        if self.sums is not None:
            own.begin_sum, own.sum_members = self.sums.begin, self.sums.members
        if not self.is_alone:
            own.tensor_count, own.use_gradients = len(self.params.tensors), self._use_call
        return own

    def called(self, function, *arguments):
        """Calls a function that may run callbacks. Errors: first those of a callback."""
        try:
            with self.catching():
                return function(*arguments)
        except BaseException:
            self._has_raised = True
            raise
        finally:
            if self._failure is not None:
                self._has_raised = True
                failure, self._failure = self._failure, None
                raise failure

    @contextlib.contextmanager
    def catching(self):
        """Within the block errors of signal handlers end the training, also those that ctypes cannot raise: in the main
        thread the interpreter may run a handler before the first line of a callback, which then has no result."""
        usual = sys.unraisablehook

        def take(lost):
            text = str(lost.err_msg)
            if any(lost.object is each or repr(each) in text for each in self._callbacks):
                self._failed(lost.exc_value)
                self._say_reason(lost.exc_value)
                self.abandon(lost.exc_value)
            else:
                usual(lost)

        sys.unraisablehook = take
        try:
            with SIGNALS.of_training(self.abandon):
                yield
        finally:
            sys.unraisablehook = usual

    def abandon(self, error):
        """Ends the job for all workers, once: an exit that follows from the error must not replace the reason."""
        if not self.is_abandoned and self.training is not None:
            self.is_abandoned = True
            library.call("training_abandon", self.training, library.text(exit_report(error)))

    def report(self, error):
        """Reports an error that no call of the script can raise, unless the error that ended the training was raised
        already."""
        if not self._has_raised:
            self._has_raised = True
            report_and_exit(error)

    def holds(self, tensor):
        """True if a tensor is one of the module's parameters or buffers."""
        return self.params.holds(tensor) or self.buffers.holds(tensor)

    def expect_trained(self, params):
        """Errors: ConfigError for a parameter that is not in the flat vector."""
        self._wrapped.expect_trained(params)

    def zero_gradients(self, set_to_none=True):
        self.grads.zero(set_to_none)

    def changed_gradients(self):
        """Returns which parameters have a gradient, a byte each; None if nothing has changed since the last call. Only
        jobs of several workers call it."""
        flags = self.grads.flags()
        if flags == self._flags:
            return None
        self._flags = flags
        return flags

    def first_without_gradient(self):
        """Returns the name of a parameter without a gradient, or None."""
        return next((name for name, parameter in zip(self.params.names, self.params.tensors) if parameter.grad is None), None)

    def align(self, training, place):
        """Waits until all workers have called it, with the same gradients before and after. Only jobs of several workers
        use it."""
        self.collect()
        flags = self.grads.flags()
        self.called(library.call, "training_align", training, library.text(place))
        self.grads.use(flags)

    def release(self):
        """Gives parameters and buffers separate memory again: savers that write each storage once, or whole, would lose
        tensors of a shared one, or write too much. Runs once; the library makes no callbacks afterwards."""
        if self._is_released:
            return
        self._is_released = True
        self.params.release()
        self.buffers.release()

    def collect(self):
        """Collects the gradients of the last backward passes. Errors: ConfigError if the module or the optimizer has
        other tensors than at construction."""
        if self._is_released:
            return
        self._wrapped.expect_unchanged()
        self.params.expect_in_place()
        self.buffers.expect_in_place()
        self.grads.collect()

    def _callback(self, body, may_fail=True):
        """Wraps `body` without the library's user pointer; stores an exception, and, if the callback may fail, its message
        for the library."""

        def callback(_user, *arguments):
            try:
                body(*arguments)
            except BaseException as error:  # also KeyboardInterrupt: no exception may leave a callback
                self._failed(error)
                if may_fail:
                    self._say_reason(error)

        self._callbacks.append(callback)
        return callback

    def _failed(self, error):
        if self._failure is None:
            self._failure = error
        if self.tells:
            self.report(error)
        if not isinstance(error, Exception):  # of a signal handler: the others get its message, not that of the callback
            self.abandon(error)

    def _say_reason(self, error):
        self._reason.value = f"{type(error).__name__}: {error}".replace("\0", "").encode(errors="replace")

    def _view(self, which, values):
        values[0] = self._held[which].address()

    def _store(self, which):
        self._held[which].store()

    def _move(self, which, address, memory):
        self._held[which].move(address, memory)

    def _use_gradients(self, flags):
        self.grads.use(ctypes.string_at(flags, len(self.params.tensors)))

    def _take_step(self, rate_factor):
        self.takes_step = True
        try:
            self._take_step_at(rate_factor)
        finally:
            self.takes_step = False

    def _take_step_at(self, rate_factor):
        if self._progress is not None and self._progress.schedulers:
            # A step may be one of several rounds, and the other workers take it at the rate of its samples.
            self._progress.follow_to(library.call("training_samples", self.training))
        if rate_factor == 1:
            self.optimizer.step()
            return
        groups = self.optimizer.param_groups
        rates = [group.get("lr") for group in groups]
        if None in rates:
            raise ConfigError("the job changes the learning rate, and a group of the optimizer has none (lr): leave out its "
                              "schedule, or choose ssgd")
        for group, rate in zip(groups, rates):
            group["lr"] = rate * rate_factor
        try:
            self.optimizer.step()
        finally:
            for group, rate in zip(groups, rates):
                group["lr"] = rate


def expect_parameters(optimizer, trained):
    """Errors: ConfigError for an optimizer of other parameters."""
    expect_whole_steps(optimizer)
    known = {id(parameter) for _, parameter in trained}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and id(parameter) not in known:
                raise ConfigError(f"the optimizer has a parameter of {parameter.numel()} values that is none of the "
                                  "module's trained parameters; make it of module.parameters()")


_HOW_TO_SAY = "take the batches from job.partition_dataset, or call optimizer.expect(samples) before backward"


class GradientHooks:
    """Reports each gradient to the library once the backward pass has completed it.

    Autograd has one node for each parameter, which accumulates its gradient, once per pass and after all uses of the
    parameter. The first gradient begins the pass of a step, so the samples of the step must be known by then: those of
    the batches whose passes belong to it, or the number passed to `expect`. The gradient of an unused parameter is
    final at `step`.

    Threads: that of the pass.
    """

    def __init__(self, job, replica, training, batch_size):
        """batch_size: samples in each step of a script without a loader of the job; else None."""
        if replica.grads.vector.values.device.type != "cpu":
            raise ConfigError(f"overlap on needs a module on the CPU, found {replica.grads.vector.values.device}; leave the "
                              "option out")
        if replica.has_lower_precision:
            raise ConfigError("overlap on needs a module of float32, found one with bfloat16 or float16; leave the option out")
        self._job, self._replica, self._training, self._batch_size = job, replica, training, batch_size
        self._expected = None
        self._passive = False  # True within no_sync
        self._batches = {}  # samples of each batch of this step, by its number
        self._samples = None  # the number with which the pass has begun
        self._reported = set()
        self._version = None  # of the gradients, at the last report
        self._places = replica.params.places
        self._nodes = [_node_of(parameter) for parameter in replica.params.tensors]  # a parameter does not keep it
        self._handles = [node.register_hook(self._hook(index)) for index, node in enumerate(self._nodes)]

    def expect(self, samples):
        """Sets the samples of the next step."""
        if self._samples is not None:
            raise ConfigError(f"the pass of this step has begun with {self._samples} samples: call expect before backward")
        self._expected = samples

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes within the block add to the gradients, and are not the last one of their step."""
        earlier, self._passive = self._passive, True
        try:
            yield
        finally:
            self._passive = earlier

    def expect_none_under_way(self, what):
        """Checks that no pass is under way before an operation that excludes one. Errors: ConfigError."""
        if self._samples is not None:
            raise ConfigError(f"{what} between a backward pass and its step: with overlap on gradients are on their way "
                              "to the other workers then")

    def end_pass(self, weight):
        """Returns the samples of the following step; `weight` is the number that the script gives, or None.
        Errors: ConfigError if the pass began with another number, or a gradient was changed after it."""
        begun, version, reported = self._samples, self._version, set(self._reported)
        usual = self._expected if self._expected is not None else self._batch_size
        self._samples = self._version = self._expected = None
        self._reported.clear()
        self._batches.clear()
        if begun is None:  # no pass outside of no_sync: everything is sent at the step
            return weight if weight is not None else usual
        if weight is not None and weight != begun:
            raise ConfigError(f"the step has a weight of {weight}, but its gradients left with one of {begun}: "
                              f"{_HOW_TO_SAY}")
        in_place = all(self._replica.grads.is_in_place(index) for index in reported)
        if version != self._replica.grads.vector.values._version or not in_place:
            raise ConfigError("a gradient was changed between its backward pass and the step: with overlap on it is on its "
                              "way to the other workers then; leave the option out to clip or scale gradients")
        return begun

    def remove(self):
        """Removes the hooks: later backward passes report nothing."""
        for handle in self._handles:
            handle.remove()

    def _hook(self, index):
        """Makes a hook that does not keep this object, and thereby the training, alive."""
        weak = weakref.ref(self)

        def hook(*_gradients):
            hooks = weak()
            if hooks is not None:
                hooks._complete(index)

        return hook

    def _complete(self, index):
        if self._job.batch is not None:
            number, samples = self._job.batch
            self._batches[number] = samples
        if self._passive:
            return
        name = self._replica.params.names[index]
        if index in self._reported:
            raise ConfigError(f"a second backward pass before step has reached {name}, whose gradient has left: with "
                              "overlap on, put all passes of a step but the last into `with optimizer.no_sync():`, and call "
                              "torch.utils.checkpoint with use_reentrant=False, whose passes are part of the one")
        if self._samples is None:
            self._begin()
        self._replica.grads.collect_one(index)
        self._reported.add(index)
        self._version = self._replica.grads.vector.values._version
        library.call("training_gradients_ready", self._training, *self._places[index])

    def _begin(self):
        known = sum(self._batches.values()) or self._batch_size
        samples = self._expected if self._expected is not None else known
        if samples is None:
            raise ConfigError(f"with overlap on the samples of a step are to be known before backward: {_HOW_TO_SAY}")
        self._replica.called(library.call, "training_begin_pass", self._training, samples)
        self._samples = samples


def _node_of(parameter):
    """Returns the autograd node that accumulates a parameter's gradient."""
    return parameter.expand_as(parameter).grad_fn.next_functions[0][0]


@dataclasses.dataclass(frozen=True)
class Scheme:
    """Describes how the workers of a scheme step. The flags are those of syncopate_scheme_traits, where they are
    explained."""

    name: str
    options: dict  # strings by name: options of `init`, the command line and the optimizer
    in_rounds: bool
    in_lockstep: bool
    local_steps: bool
    takes_means: bool
    waits_for_steps: bool
    pulls_each_step: bool
    pulls_some_steps: bool

    @property
    def synchronizes(self):
        """True if workers exchange anything."""
        return self.in_rounds or not self.in_lockstep

    @property
    def shares_steps(self):
        """True if the optimizers of all workers take the same steps."""
        return self.in_rounds and not self.local_steps

    @property
    def steps_together(self):
        """True if all workers take each step together."""
        return self.shares_steps and self.in_lockstep


def scheme_of(job, scheme=None, options=None):
    """Returns the `Scheme` of a training with these arguments of `DistributedOptimizer`. Errors: ConfigError."""
    traits = library.SchemeTraits(size=ctypes.sizeof(library.SchemeTraits))
    array, count = library.options(options)
    library.call("describe_scheme", job.handle, library.text(scheme), array, count, ctypes.byref(traits))
    flags = {field.name: bool(getattr(traits, field.name)) for field in dataclasses.fields(Scheme)[2:]}
    return Scheme(traits.scheme.decode(), json.loads(traits.options), **flags)
