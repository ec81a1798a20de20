"""The model that a scheme trains: the flat vectors of a module, and a step of its optimizer."""
import contextlib
import ctypes
import json
import sys

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.process import SIGNALS, report_and_exit, exit_report
from syncopate_torch.training.flat import (FlatGradients, FlatTensors, OwnGradients, expect_apart, trained_tensors,
                                           untrained_tensors)
from syncopate_torch.training.module_tensors import WrappedTensors
from syncopate_torch.training.torch_optimizers import expect_whole_steps, refuse_other_steps


class Replica:
    """A module and its optimizer, used by the callbacks of the library.

    Parameters and float32 buffers of the module become views of flat vectors, and so do gradients if other workers get
    them. The library runs callbacks during `called`, on the thread of that call, which raises an exception of a
    callback.

    alone:  True if no other process gets the gradients.
    skips:  True if a non-finite gradient must change nothing.
    Errors: ConfigError for a module without trained parameters, on several devices, or with trained parameters that are
            not float32, and for an optimizer of other parameters.
    """

    def __init__(self, module, optimizer, on_round=None, alone=False, skips=False):
        trained = trained_tensors(module)
        expect_parameters(optimizer, trained)
        untrained = untrained_tensors(module)
        expect_apart(trained + untrained)
        device = trained[0][1].device
        self.optimizer = optimizer
        self.takes_step = False  # True during a step that the scheme takes
        refuse_other_steps(optimizer, self)
        self._wrapped = WrappedTensors(module, optimizer)
        self.params = FlatTensors(trained, device)
        self.grads = OwnGradients(self.params, looks_at_all=skips) if alone else FlatGradients(self.params, device)
        self.buffers = FlatTensors([] if alone else untrained, device, may_resize=True)
        self.is_alone = alone
        self.skips = skips
        self._vectors = {library.PARAMETERS: self.params.vector, library.BUFFERS: self.buffers.vector}
        if not alone:  # otherwise they are never requested
            self._vectors[library.GRADIENTS] = self.grads.vector
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
        if on_round:  # its errors end this worker, but not the round
            self.round_call = library.OnRound(self._callback(lambda line: on_round(json.loads(line)), may_fail=False))

    @property
    def is_training(self):
        return self.training is not None and not self._is_released

    def description(self):
        """Returns the description for the library."""
        own = library.Replica(size=ctypes.sizeof(library.Replica), parameter_count=len(self.params.vector.values),
                              buffer_count=len(self.buffers.vector.values), view=self._view_call, take_step=self._step_call)
        own.reason = ctypes.pointer(self._reason)
        if self.is_alone or self.params.vector.values.device.type != "cpu":
            own.store = self._store_call
        else:
            own.move = self._move_call
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

    def align(self, training, place, progress):
        """Waits until all workers have called it, with the same gradients before and after. Only jobs of several workers
        use it."""
        self.collect()
        flags = self.grads.flags()
        progress.rests = True
        try:
            self.called(library.call, "training_align", training, library.text(place))
        finally:
            progress.rests = False
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
        self._wrapped.expect_in_place(self.params)
        self._wrapped.expect_in_place(self.buffers)
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
        values[0] = self._vectors[which].address()

    def _store(self, which):
        self._vectors[which].store()

    def _move(self, which, address, memory):
        if which == library.GRADIENTS:
            self.grads.move(address, memory)
        else:
            self._vectors[which].move(address, memory)
            (self.params if which == library.PARAMETERS else self.buffers).attach()

    def _use_gradients(self, flags):
        self.grads.use(ctypes.string_at(flags, len(self.params.tensors)))

    def _take_step(self, rate_factor):
        self.takes_step = True
        try:
            self._take_step_at(rate_factor)
        finally:
            self.takes_step = False

    def _take_step_at(self, rate_factor):
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
