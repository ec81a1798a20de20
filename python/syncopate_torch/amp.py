"""Mixed precision: a loss scale with which all workers take or skip a step together."""
from syncopate_torch.core import torch_versions


class GradScaler(torch_versions.GradScaler):
    """torch's GradScaler for a `DistributedOptimizer` or an optimizer of torch.optim.

    If workers share gradients, a worker with non-finite gradients would skip a step that the others take. Here all of
    them skip it and lower the scale. Otherwise each worker decides on its own.
    """

    def __init__(self, job, *arguments, **options):
        super().__init__(*arguments, **options)
        job.keep_state("scaler", self)
        job.scales_loss = self.is_enabled()

    def job_state(self):
        return self.state_dict()

    def take_job_state(self, state, _same_size):
        if state:  # the state of a disabled scaler is empty
            self.load_state_dict(state)

    def _maybe_opt_step(self, optimizer, optimizer_state, *arguments, **options):
        if getattr(optimizer, "shares_gradients", False):
            optimizer.expect_no_pass("the overflow of a loss scale")
            for found in optimizer_state["found_inf_per_device"].values():
                found.copy_(optimizer.overflows.of(found.reshape(1)).clamp(max=1).reshape(found.shape))
        return super()._maybe_opt_step(optimizer, optimizer_state, *arguments, **options)
