"""An optimizer of torch.optim that stands for another one."""
import copy

import torch

from syncopate_torch.errors import ConfigError


class StandIn(torch.optim.Optimizer):
    """It has the groups, the state and the defaults of the optimizer that it takes the place of."""

    def __init__(self, optimizer):
        #: The optimizer of torch.optim that the script has made.
        self.optimizer = optimizer
        super().__setstate__({})  # hooks alone: the groups and the state are those of `optimizer`

    @property
    def param_groups(self):
        """Those of the optimizer of torch.optim."""
        return self.optimizer.param_groups

    @property
    def state(self):
        """That of the optimizer of torch.optim."""
        return self.optimizer.state

    @property
    def defaults(self):
        """Those of the optimizer of torch.optim."""
        return self.optimizer.defaults

    def add_param_group(self, param_group):
        """Adds a group to the optimizer of torch.optim, on all workers before the same step: of parameters of the module that
        had `requires_grad` when the training began, and that no group has yet.
        Errors: ConfigError, for other parameters."""
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
        """That of the optimizer of torch.optim."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state):
        """Gives the optimizer of torch.optim a state that `state_dict` has returned."""
        self.optimizer.load_state_dict(state)

    def saved_with(self, module):
        """Copies of the states of the module that it trains, and of its own."""
        values = {name: value.detach().clone() if torch.is_tensor(value) else copy.deepcopy(value)
                  for name, value in module.state_dict().items()}
        return {"module": values, "optimizer": copy.deepcopy(self.optimizer.state_dict())}
