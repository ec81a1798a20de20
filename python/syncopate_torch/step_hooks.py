"""Hooks around the steps of an optimizer, which torch has since version 2."""
import torch

_around = getattr(torch.optim.Optimizer, "profile_hook_step", None)


def has_step_hooks(optimizer):
    """True where the script has registered one for this optimizer."""
    return bool(getattr(optimizer, "_optimizer_step_pre_hooks", None) or
                getattr(optimizer, "_optimizer_step_post_hooks", None))


def with_step_hooks(step):
    """A function that calls hooks, as torch does, before and after `step`."""
    return step if _around is None else _around(step)
