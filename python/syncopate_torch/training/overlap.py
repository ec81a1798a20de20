"""Gradients that are sent during the backward pass: option `overlap` `on` of scheme ssgd."""
import contextlib
import weakref

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError

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
