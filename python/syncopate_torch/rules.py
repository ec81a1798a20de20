"""The rules of torch.optim's optimizers in the words of `syncopate train`, for a server that applies them."""
import torch

from syncopate_torch.errors import ConfigError


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
        decoupled = group.get("decoupled_weight_decay", False)  # of Adam, since torch 2.6
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
    """Errors: ConfigError, for an optimizer whose step computes the loss again."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ConfigError("LBFGS evaluates the loss again within a step, which a distributed step cannot; choose another "
                          "optimizer")


# Of an epsilon, and of a weight decay.
_MOST = 1000
# Of a group, what a rule depends on beside the rate.
SETTINGS = ("momentum", "dampening", "nesterov", "weight_decay", "betas", "eps", "amsgrad", "alpha", "centered", "lr_decay",
             "maximize")


def settings_of(optimizer):
    """What the rule of an optimizer depends on beside the rates of its groups."""
    return [{name: group[name] for name in SETTINGS if name in group} for group in optimizer.param_groups]


def standing_for(optimizer):
    """The rule in place of one that has no words. Schemes and codecs ask a rule for its momentum, if it is one of SGD."""
    momenta = {float(group["momentum"]) for group in optimizer.param_groups} if isinstance(optimizer, torch.optim.SGD) else {0}
    momentum = momenta.pop() if len(momenta) == 1 else 0
    return {"optimizer": "momentum", "momentum": momentum} if 0 < momentum < 1 else {"optimizer": "sgd"}


def _beyond(numbers):
    """Why a server takes no rule with these numbers; None: it does."""
    for name in ("momentum", "beta1", "beta2", "alpha"):
        if not 0 <= numbers.get(name, 0) < 1:
            return f"its {name} is a number from 0 to below 1, found {numbers[name]:g}"
    if not 0 < numbers.get("epsilon", 1) <= _MOST:
        return f"its epsilon is above 0 and at most {_MOST}, found {numbers['epsilon']:g}"
    if not 0 <= numbers["weight-decay"] <= _MOST:
        return f"its weight decay is from 0 to {_MOST}, found {numbers['weight-decay']:g}"
    return None


def rule_of(optimizer, trained):
    """The options that describe an optimizer, and why no server can apply its rule: one of both.

    trained: the `FlatTensors` that the server takes steps for."""
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
