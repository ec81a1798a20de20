"""The steps of an optimizer of torch.optim, which are those of a job as long as one trains with it."""
import functools
import types
import weakref

from syncopate_torch.errors import ConfigError


def refuse_other_steps(optimizer, replica):
    """From now on `optimizer.step()` is refused while `replica` trains, but for steps of the job (`replica.takes_step`): a
    script that moves here easily goes on to call it, and each worker would train by itself."""
    earlier, weak = optimizer.step, weakref.ref(replica)

    @functools.wraps(earlier)  # schedulers look for their marks
    def step(_optimizer, *arguments, **options):
        replica = weak()
        if replica is not None and replica.is_training and not replica.takes_step:
            raise ConfigError(f"the job trains with this {type(optimizer).__name__}, and its own step() would leave out the other "
                              "workers: call step() of the DistributedOptimizer in its place")
        return earlier(*arguments, **options)

    optimizer.step = types.MethodType(step, optimizer)  # a scheduler expects a method
