"""Mixed precision: a loss scale whose steps all workers take or leave out together."""
from syncopate_torch.core import torch_versions


class GradScaler(torch_versions.GradScaler):
    """torch's GradScaler for a `DistributedOptimizer`, or for one of torch.optim.

    Where workers share gradients, one whose gradients are not finite would leave out a step that the others take: here
    all of them leave it out, and lower the scale. Elsewhere each worker does so by itself.
    """

    def __init__(self, job, *arguments, **options):
        super().__init__(*arguments, **options)
        job.keep_state("scaler", self)
        job.scales_loss = self.is_enabled()

    def job_state(self):
        return self.state_dict()

    def take_job_state(self, state, _same_size):
        if state:  # that of a scaler that is not enabled is empty
            self.load_state_dict(state)

    def _maybe_opt_step(self, optimizer, optimizer_state, *arguments, **options):
        if getattr(optimizer, "shares_gradients", False):
            optimizer.expect_no_pass("the overflow of a loss scale")
            for found in optimizer_state["found_inf_per_device"].values():
                found.copy_(optimizer.overflows.of(found.reshape(1)).clamp(max=1).reshape(found.shape))
        return super()._maybe_opt_step(optimizer, optimizer_state, *arguments, **options)
