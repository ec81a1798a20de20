"""Hugging Face Accelerate with every scheme: a context manager like Accelerate's `LocalSGD`.

    job = syncopate_torch.init(scheme="esync")
    data = job.partition_dataset(dataset, batch_size=64)
    accelerator = Accelerator()
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer) as training:
        for x, y in data:
            with accelerator.accumulate(model):
                accelerator.backward(loss(model(x), y))
                training.step(weight=len(x))        # was: optimizer.step(), and local_sgd.step()
                optimizer.zero_grad()

Start it with `syncopate run -n 2 -- python3 train.py`. Each process is a worker of the job; Accelerate sees only one
process.
"""
import torch

try:
    from accelerate import DistributedType
    from accelerate.optimizer import AcceleratedOptimizer
except ImportError as error:
    raise ImportError("syncopate_torch.accelerate needs Accelerate; pip install accelerate") from error

from syncopate_torch.core.arguments import whole_weight
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.distributed.rendezvous import current_job, init
from syncopate_torch.training.optimizer import DistributedOptimizer


class rounds:  # noqa: N801 (a context manager, named as those of contextlib)
    """Within the block the script's steps are those of a job, whose scheme decides when workers synchronize.

    accelerator:     an accelerator of one process, in fp32 or bf16. Under a launcher that is `Accelerator()` on a CPU.
    model:           the model, before or after `accelerator.prepare`.
    optimizer:       one optimizer, before or after `accelerator.prepare`. If it is no `DistributedOptimizer`, the block
                     makes one.
    scheme, options: as in `syncopate_torch.init`, which the block calls if the script has not.
    batch_size:      samples in a usual step of each worker, the same on all workers, for a script that does not call
                     `partition_dataset`. A step with another number of samples passes it: `step(weight=n)`.
    on_round:        as in `Job.DistributedOptimizer`.
    enabled:         if False, each process trains on its own.

    Within the block `accelerator.get_state_dict`, and therefore `save_model` and `save_state`, copies the weights. At
    its end the block waits for the loops of all workers; after an exception it ends the job for all workers, as
    `DistributedOptimizer` does. A job has one such block.
    Errors: ConfigError for an accelerator of several processes or in fp16, and those of `Job.DistributedOptimizer`.
    """

    def __init__(self, accelerator, model, optimizer, scheme=None, options=None, batch_size=None, on_round=None,
                 enabled=True):
        _expect_one_process(accelerator)
        self.enabled = enabled
        self._accelerator, self._plain = accelerator, optimizer
        self._samples = 0  # of the batches since the last step
        self.job, self.distributed_optimizer = None, None
        if enabled:
            current = current_job()
            self.job = current or init(scheme, options)
            given = {"scheme": scheme, "options": options} if current else {}
            inner = optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer
            self.distributed_optimizer = inner if isinstance(inner, DistributedOptimizer) else (
                self.job.DistributedOptimizer(inner, accelerator.unwrap_model(model), batch_size=batch_size,
                                              on_round=on_round, **given))

    def __enter__(self):
        if self.enabled:
            self.distributed_optimizer.__enter__()
            self._get_state_dict = self._accelerator.get_state_dict
            self._accelerator.get_state_dict = self._state_dict_to_save
        return self

    def __exit__(self, kind, error, trace):
        if not self.enabled:
            return
        self._accelerator.get_state_dict = self._get_state_dict
        if error is None:
            self.distributed_optimizer.align("the end of rounds")
        self.distributed_optimizer.__exit__(kind, error, trace)

    def _state_dict_to_save(self, *arguments, **options):
        """Returns the result of `Accelerator.get_state_dict` with separate memory for each tensor: Accelerate's savers
        keep one tensor per storage, and all trained parameters share one. A tensor with two names stays one tensor."""
        state, copies = self._get_state_dict(*arguments, **options), {}
        for name, value in state.items():
            if torch.is_tensor(value):
                state[name] = copies.setdefault((value.data_ptr(), value.shape, value.stride()), value.clone())
        return state

    def step(self, weight=None):
        """Replaces `optimizer.step()`. Within `accelerator.accumulate` only the last batch takes a step.

        weight: samples, or tokens, of the last batch; accumulated batches count with their sum [the samples of a usual
                step].
        Errors: those of `DistributedOptimizer.step`.
        """
        if not self.enabled:
            self._plain.step()
            return
        self._samples += self._weight_of(weight)
        if self._accelerator.sync_gradients:
            samples, self._samples = self._samples, 0
            self.distributed_optimizer.step(weight=samples)

    def synchronize(self, weight=None):
        """Replaces gradients by those that `step(weight)` will use. Call it before `accelerator.clip_grad_norm_`, with
        the same weight."""
        if self.enabled and self._accelerator.sync_gradients:
            self.distributed_optimizer.synchronize(self._samples + self._weight_of(weight))

    def _weight_of(self, weight):
        return self.distributed_optimizer.batch_size if weight is None else whole_weight(weight)

    def align(self, place="align"):
        """Waits for all workers, which may have taken different numbers of steps, before a test or a checkpoint in the
        middle of training (`DistributedOptimizer.align`)."""
        if self.enabled:
            self.distributed_optimizer.align(place)


def _expect_one_process(accelerator):
    if accelerator.distributed_type != DistributedType.NO or accelerator.num_processes != 1:
        raise ConfigError(f"rounds needs an Accelerator of one process, found {accelerator.num_processes} "
                          f"({accelerator.distributed_type.value}): leave out cpu=True and ACCELERATE_USE_CPU, and "
                          "start the script by `syncopate run`, not by `accelerate launch`")
    if accelerator.mixed_precision == "fp16":
        raise ConfigError("rounds takes no mixed_precision=\"fp16\"; choose bf16 or no")
