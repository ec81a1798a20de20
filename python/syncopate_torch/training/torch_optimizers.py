"""The properties of torch.optim optimizers that a job needs: rules, settings and steps; learning rate schedules by the
samples of all workers."""
import copy
import functools
import types
import weakref
import zlib

import torch

from syncopate_torch.core.errors import ConfigError


def _sgd(group):
    if group["dampening"]:
        return None, "its rule has no dampening; set dampening to 0"
    if not group["momentum"]:
        return {"optimizer": "sgd"}, None
    return {"optimizer": "nesterov" if group["nesterov"] else "momentum", "momentum": group["momentum"]}, None


def _adam(name):
    def rule(group):
        if group["amsgrad"]:
            return None, "its rule has no amsgrad; set amsgrad to False"
        beta1, beta2 = group["betas"]
        decoupled = group.get("decoupled_weight_decay", False)  # an option of Adam since torch 2.6
        return {"optimizer": "adamw" if decoupled else name, "beta1": beta1, "beta2": beta2, "epsilon": group["eps"]}, None

    return rule


def _rmsprop(group):
    if group["momentum"] or group["centered"]:
        return None, "its rule of RMSprop is neither centered nor has it a momentum"
    return {"optimizer": "rmsprop", "alpha": group["alpha"], "epsilon": group["eps"]}, None


def _adagrad(group):
    if group["lr_decay"] or group["initial_accumulator_value"]:
        return None, "its rule of Adagrad has neither a decay of the rate nor a first sum"
    return {"optimizer": "adagrad", "epsilon": group["eps"]}, None


_RULES = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam("adam"), torch.optim.AdamW: _adam("adamw"),
          torch.optim.RMSprop: _rmsprop, torch.optim.Adagrad: _adagrad}


def expect_whole_steps(optimizer):
    """Errors: ConfigError for an optimizer whose step computes the loss again."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ConfigError("LBFGS evaluates the loss again within a step, which a distributed step cannot; choose another "
                          "optimizer")


# Upper bound of an epsilon and of a weight decay.
_MOST = 1000
# Settings of a group on which a rule depends, besides the rate.
SETTINGS = ("momentum", "dampening", "nesterov", "weight_decay", "betas", "eps", "amsgrad", "alpha", "centered", "lr_decay",
             "maximize")


def settings_of(optimizer):
    """Returns the settings on which the rule of an optimizer depends, besides the rates of its groups."""
    return [{name: group[name] for name in SETTINGS if name in group} for group in optimizer.param_groups]


def default_rule(optimizer):
    """Returns the rule to use for an optimizer whose rule has no options. Schemes and codecs use the momentum of an SGD
    rule."""
    momenta = {float(group["momentum"]) for group in optimizer.param_groups} if isinstance(optimizer, torch.optim.SGD) else {0}
    momentum = momenta.pop() if len(momenta) == 1 else 0
    return {"optimizer": "momentum", "momentum": momentum} if 0 < momentum < 1 else {"optimizer": "sgd"}


def _beyond(numbers):
    """Returns the reason why a server does not accept a rule with these numbers, or None."""
    for name in ("momentum", "beta1", "beta2", "alpha"):
        if not 0 <= numbers.get(name, 0) < 1:
            return f"its {name} is a number from 0 to below 1, found {numbers[name]:g}"
    if not 0 < numbers.get("epsilon", 1) <= _MOST:
        return f"its epsilon is above 0 and at most {_MOST}, found {numbers['epsilon']:g}"
    if not 0 <= numbers["weight-decay"] <= _MOST:
        return f"its weight decay is from 0 to {_MOST}, found {numbers['weight-decay']:g}"
    return None


def rule_of(optimizer, trained):
    """Returns the options that describe an optimizer, and the reason why no server can apply its rule: one of both.

    trained: the `FlatTensors` for which the server takes steps."""
    taken = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in zip(trained.names, trained.tensors):
        if id(parameter) not in taken:
            return {}, (f"it steps the whole module, and {name} is in no group of the optimizer: freeze that by "
                        "requires_grad_(False)")
    find = _RULES.get(type(optimizer))
    if find is None:
        return {}, "it knows SGD, RMSprop, Adam, AdamW and Adagrad of torch.optim alone"
    rules = []
    for group in optimizer.param_groups:
        if group.get("maximize"):
            return {}, "its rule descends; set maximize to False"
        rule, reason = find(group)
        if reason:
            return {}, reason
        numbers = {name: value if name == "optimizer" else float(value)
                   for name, value in {**rule, "weight-decay": group["weight_decay"]}.items()}
        reason = _beyond(numbers)
        if reason:
            return {}, reason
        rules.append((numbers, float(group["lr"])))
    if any(rule != rules[0] for rule in rules):
        return {}, "it has one rule for all parameters; give all groups the same options"
    return rules[0][0], None


class StepSettings:
    """The settings of all groups of a torch.optim optimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._last = None

    def changed(self):
        """Returns the rate of the first group, and a checksum of all settings; None if they have not changed since the
        last call, or are on a device, for which a step would have to wait."""
        settings = [[_number(group.get(name)) for name in ("lr", *SETTINGS)] for group in self._optimizer.param_groups]
        if settings == self._last or any(_is_on_device(value) for row in settings for value in row):
            return None
        self._last = settings
        sizes = [len(group["params"]) for group in self._optimizer.param_groups]
        text = repr((sizes, [[_text(value) for value in row] for row in settings]))
        return settings[0][0] or 0, zlib.crc32(text.encode()) or 1


def _number(value):
    return float(value) if torch.is_tensor(value) and not _is_on_device(value) else value


def _is_on_device(value):
    return torch.is_tensor(value) and value.device.type != "cpu"


def _text(value):
    """Formats a number with six digits, because hosts may compute the last digit of a schedule differently."""
    if isinstance(value, (list, tuple)):
        return [_text(each) for each in value]
    return str(value) if value is None or isinstance(value, bool) else f"{float(value):.6g}"


def refuse_other_steps(optimizer, replica):
    """Makes `optimizer.step()` raise an error while `replica` trains, except for steps of the job
    (`replica.takes_step`): a script that was converted may still call it, and each worker would then train on its
    own."""
    earlier, weak = optimizer.step, weakref.ref(replica)

    @functools.wraps(earlier)  # schedulers check for their marks
    def step(_optimizer, *arguments, **options):
        replica = weak()
        if replica is not None and replica.is_training and not replica.takes_step:
            raise ConfigError(f"the job trains with this {type(optimizer).__name__}, and its own step() would leave out the other "
                              "workers: call step() of the DistributedOptimizer in its place")
        return earlier(*arguments, **options)

    optimizer.step = types.MethodType(step, optimizer)  # a scheduler expects a method


class StandIn(torch.optim.Optimizer):
    """An optimizer with the groups, the state and the defaults of the one that it replaces."""

    def __init__(self, optimizer):
        #: The optimizer of torch.optim that the script has made.
        self.optimizer = optimizer
        super().__setstate__({})  # only hooks: the groups and the state are those of `optimizer`

    @property
    def param_groups(self):
        """The parameter groups of the torch.optim optimizer."""
        return self.optimizer.param_groups

    @property
    def state(self):
        """The state of the torch.optim optimizer."""
        return self.optimizer.state

    @property
    def defaults(self):
        """The defaults of the torch.optim optimizer."""
        return self.optimizer.defaults

    def add_param_group(self, param_group):
        """Adds a group to the torch.optim optimizer, on all workers before the same step. Its parameters belong to the
        module, had `requires_grad` when the training began, and are in no group yet.
        Errors: ConfigError for other parameters."""
        given = param_group["params"]
        if isinstance(given, (set, frozenset)):
            raise ConfigError("the parameters of a group are in a set, whose order differs between workers: pass a list")
        params = [given] if torch.is_tensor(given) else list(given)
        self._expect_to_train(each[1] if isinstance(each, tuple) else each for each in params)
        self.optimizer.add_param_group({**param_group, "params": params})

    def __getstate__(self):
        raise ConfigError("a DistributedOptimizer cannot be pickled or copied: it is this worker's part in a job; save its "
                          "state_dict(), or that of the job")

    def state_dict(self):
        """The state dict of the torch.optim optimizer."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state):
        """Loads a state that `state_dict` has returned into the torch.optim optimizer."""
        self.optimizer.load_state_dict(state)

    def saved_with(self, module):
        """Returns copies of the states of the trained module and of the optimizer."""
        values = {name: value.detach().clone() if torch.is_tensor(value) else copy.deepcopy(value)
                  for name, value in module.state_dict().items()}
        return {"module": values, "optimizer": copy.deepcopy(self.optimizer.state_dict())}


def rates_of(optimizer):
    """Returns the rates as numbers, also if a group holds its rate in a tensor that changes in place."""
    rates = [group.get("lr") for group in optimizer.param_groups]  # some optimizers choose their rate themselves
    return [None if rate is None else float(rate) for rate in rates]


class KeptRates:
    """Refuses learning rates and groups that a script changes between two steps, where workers share gradients and take
    different numbers of steps: each worker would apply a gradient at another rate."""

    def __init__(self, optimizer, scheme):
        """scheme: the `Scheme` of a job of several workers, or None."""
        self._optimizer = optimizer
        self._scheme = scheme.name if scheme is not None and scheme.shares_steps and not scheme.in_lockstep else None
        self._kept = None

    def keep(self):
        """Keeps the rates after a step and the steps of `Job.scheduler`."""
        if self._scheme is not None:
            self._kept = rates_of(self._optimizer)

    def may_change(self):
        """Allows other rates once: all workers are at the same place."""
        self._kept = None

    def expect_kept(self):
        """Errors: ConfigError for other rates."""
        if self._kept is not None and self._kept != rates_of(self._optimizer):
            raise ConfigError(f"the script changes learning rates or groups between two steps, and under {self._scheme} workers take "
                              "different numbers of steps: their models would drift apart; give the schedule to job.scheduler, "
                              "which counts the samples of all workers, or change rates right after align()")


class SampleScheduler:
    """Steps a scheduler of torch.optim by the samples of the job instead of the steps of a worker.

    every: samples of all workers between two steps of the scheduler; the size of the dataset for a schedule by epochs.
    """

    def __init__(self, job, scheduler, optimizer, every):
        if not every > 0:
            raise ConfigError(f"a scheduler needs a number of samples above 0 between its steps, found {every}")
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise ConfigError("a ReduceLROnPlateau follows a loss, not samples: give it no job.scheduler, and call its step(loss) on "
                              "all workers after align(), with a loss that they have reduced")
        #: The scheduler of torch.optim.
        self.scheduler = scheduler
        for each in _with_parts(scheduler):
            if each.optimizer is optimizer:  # breaks a reference cycle that would never be freed
                each.optimizer = weakref.proxy(optimizer)
        self._every = every
        self._steps = 0
        optimizer.follow_samples(self)
        job.keep_state("scheduler", self)

    def follow(self, samples):
        """Takes the steps that are due after `samples` samples of the job."""
        while (self._steps + 1) * self._every <= samples:
            self.scheduler.step()
            self._steps += 1

    def get_last_lr(self):
        """The learning rates of the parameter groups that the scheduler has set last."""
        return self.scheduler.get_last_lr()

    def state_dict(self):
        """The scheduler's state, and the number of its steps."""
        return {"scheduler": _plain(self.scheduler.state_dict()), "steps": self._steps}

    def load_state_dict(self, state):
        """Continues from a state that `state_dict` has returned."""
        self.scheduler.load_state_dict(state["scheduler"])
        self._steps = state["steps"]

    def job_state(self):
        groups = [{name: _copied(value) for name, value in group.items() if name != "params"} for group in self._groups]
        return {**self.state_dict(), "groups": groups}

    def take_job_state(self, state, _same_size):
        """Also restores the settings of the optimizer's groups: creating a scheduler sets rates, and sometimes
        momentum, to their initial values."""
        self.load_state_dict(state)
        for group, kept in zip(self._groups, state.get("groups", ())):
            group.update({name: _copied(value) for name, value in kept.items()})

    @property
    def _groups(self):
        return self.scheduler.optimizer.param_groups


def _with_parts(scheduler):
    """Yields a scheduler and, recursively, its parts, such as those of a SequentialLR."""
    yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _with_parts(part)


def _plain(state):
    """Removes functions, which some schedulers of older torch versions put into their state: a new scheduler has the
    same ones."""
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items() if not callable(value)}
    return [_plain(value) for value in state] if isinstance(state, list) else state


def _copied(value):
    return value.clone() if torch.is_tensor(value) else value
