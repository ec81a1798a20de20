"""PyTorch Lightning with every scheme: `Trainer(strategy=SyncopateStrategy(scheme="esync"))`.

    trainer = lightning.Trainer(accelerator="cpu", devices=1, strategy=SyncopateStrategy(scheme="esync"))
    trainer.fit(model, DataLoader(dataset, batch_size=64, shuffle=True))

Start it with `syncopate run -n 2 -- python3 train.py`, torchrun, mpirun or srun: each process is a worker, and
Lightning starts none. Works with package `lightning`, or `pytorch_lightning` if the script imports it first.
"""
import contextlib
import warnings

import torch

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import host_values
from syncopate_torch.core.arguments import shared_object
from syncopate_torch.integrations.lightning_package import (BaseFinetuning, BatchSizeFinder, FirstCallback,
                                                            LearningRateFinder, ModelCheckpoint, ParallelStrategy,
                                                            Stepper, StochasticWeightAveraging, SyncopateEnvironment,
                                                            Timer, extract_batch_size, is_overridden, rank_zero_only)
from syncopate_torch.integrations.loaders import (has_length, order_of_the_job, overfit_loader, part_loader,
                                                  resume_order, training_loader)
from syncopate_torch.distributed.rendezvous import init
from syncopate_torch.training.flat import EXCHANGED
from syncopate_torch.training.optimizer import DistributedOptimizer
from syncopate_torch.training.replica import scheme_of
from syncopate_torch.training.torch_optimizers import expect_whole_steps


_PRECISIONS = ("32-true", "bf16-mixed", "bf16-true")
# Hooks that run in each step of a worker: values that they log are the worker's own.
_HOOKS_OF_STEPS = {"on_train_batch_start", "on_before_zero_grad", "on_before_backward", "on_after_backward",
                   "on_before_optimizer_step", "on_train_batch_end", "on_validation_batch_start", "on_validation_batch_end",
                   "on_test_batch_start", "on_test_batch_end"}
# Checkpoint key of the number of workers.
_WORKERS = "syncopate_workers"
# Attributes of a `ModelCheckpoint` that describe the files it has written.
_PATHS = ("best_model_path", "last_model_path", "kth_best_model_path", "best_k_models")


class SyncopateStrategy(ParallelStrategy):
    """Trains one replica on each worker of a job, with the job's scheme.

    - The training loader gets the order of the job (`Job.sampler`): its batch size is that of one worker, and all
      workers together take every sample once per epoch. Loaders for tests are divided: each sample goes to one worker.
    - At the end of an epoch, before a test and before a checkpoint all workers wait for each other
      (`DistributedOptimizer.align`). Their replicas are then equal, except in `local`, `downpour` and `easgd`. Worker 0
      writes checkpoints.
    - A value that `self.log` collects over an epoch with `sync_dist=True` is the mean over the samples of all workers.
      Within a step `sync_dist` does not change a value, because workers take different numbers of steps. Metrics of
      torchmetrics count the samples of all workers.

    scheme, options: as in `syncopate_torch.init`.
    weight: function that returns the weight of a batch in the mean over workers, such as its number of tokens [the
            number of samples that Lightning finds in the batch].
    Errors: ConfigError for features of Lightning that a job cannot support; those of `init`.
    """

    strategy_name = "syncopate"

    def __init__(self, scheme=None, options=None, weight=None, accelerator=None, parallel_devices=None,
                 checkpoint_io=None, precision_plugin=None):
        self.job = init(scheme, options)
        super().__init__(accelerator=accelerator, parallel_devices=parallel_devices,
                         cluster_environment=SyncopateEnvironment(self.job), checkpoint_io=checkpoint_io,
                         precision_plugin=precision_plugin)
        rank_zero_only.rank = self.job.rank
        self._scheme = scheme_of(self.job)
        self._weight = weight or _samples_of
        self._trainer, self._loader = None, None
        self._divides = False  # True if this strategy divides the samples of loaders
        self._place = (0, 0)  # position of the training loader: (epoch, batches taken from it)
        self._makes_optimizers = False
        self._optimizer = None  # the optimizer of the job; made once
        self._steps_since_alignment = False
        self._in_step = False
        self.is_failing = False  # after an exception this worker takes part in no collective
        self._saved_by = self.job.size  # number of workers that wrote the checkpoint from which fit resumes
        self._sent, self._log_dirs = None, {}
        self._samples, self._first_samples = 0, 0  # of the batches since the last step
        self._batch_samples, self._scale = 0, 1  # of the last batch

    # Devices.

    @property
    def root_device(self):
        """The device of this worker: its local rank selects among several devices."""
        return self.parallel_devices[self.job.local_rank % len(self.parallel_devices)]

    def model_to_device(self):
        self.model.to(self.root_device)

    @property
    def distributed_sampler_kwargs(self):
        return {"num_replicas": self.job.size, "rank": self.job.rank}

    @property
    def is_distributed(self):
        """If True, Lightning reduces the values that `self.log` collects with `sync_dist=True`."""
        return self.job.size > 1

    # Setup and the training loop.

    def setup_environment(self):
        if self.root_device.type == "cpu" and len(self.parallel_devices) not in (1, self.job.size):
            devices = len(self.parallel_devices)
            raise ConfigError(f"Trainer(devices={devices}) does not fit a job of {self.job.size} workers: the launcher "
                              f"starts them; pass devices=1 and start `syncopate run -n {devices}`")
        super().setup_environment()

    def setup(self, trainer):
        self._trainer = trainer
        connector = trainer._accelerator_connector
        self._divides = connector.use_distributed_sampler and not trainer.predicting
        if self._divides:  # Lightning's sampler would repeat samples; Lightning divides those of a prediction
            connector.use_distributed_sampler = False
        super().setup(trainer)
        for module in self.model.modules():
            if hasattr(module, "dist_sync_fn") and hasattr(module, "distributed_available_fn"):
                module.dist_sync_fn, module.distributed_available_fn = self._gather_all, lambda: self.job.size > 1
        if self.optimizers:
            self.job.broadcast_parameters(self.model)

    def setup_optimizers(self, trainer):
        if self._optimizer is not None:
            raise ConfigError("a job trains once, and Trainer.fit was called again; start another job, with "
                              "fit(ckpt_path=...) to go on")
        self._expect_one_training(trainer)
        self._makes_optimizers = True
        super().setup_optimizers(trainer)
        self._makes_optimizers = False
        # If configure_optimizers returns None, Lightning makes an optimizer without parameters.
        found = sum(len(each.param_groups) > 0 for each in self.optimizers)
        if found != 1:
            raise ConfigError(f"SyncopateStrategy trains with one optimizer of configure_optimizers, found {found}; give one "
                              "optimizer several parameter groups, or take "
                              "DDPStrategy(process_group_backend=\"syncopate\")")
        expect_whole_steps(self.optimizers[0])
        precision = str(self.precision_plugin.precision)
        if precision not in _PRECISIONS:
            raise ConfigError(f"Trainer(precision=\"{precision}\") is not supported by SyncopateStrategy; choose "
                              f"{', '.join(_PRECISIONS)}")

    def _expect_one_training(self, trainer):
        for each in trainer.callbacks:
            if isinstance(each, (LearningRateFinder, BatchSizeFinder)):
                raise ConfigError(f"{type(each).__name__} trains before the training, and a job trains once; find the value "
                                  "in a script without SyncopateStrategy, and set it here")
            if isinstance(each, StochasticWeightAveraging) and _has_statistics(self.model):
                raise ConfigError("StochasticWeightAveraging replaces the statistics of BatchNorm, which the job keeps in "
                                  "place; leave it out, take EMAWeightAveraging, or layers without statistics such as "
                                  "torch.nn.GroupNorm")
        if self._layer_sync is not None:
            raise ConfigError("Trainer(sync_batchnorm=True) is not supported by SyncopateStrategy, whose workers take steps "
                              "of their own; take torch.nn.GroupNorm, or torch.nn.BatchNorm over the batch of each worker")

    @property
    def distributed_optimizer(self):
        """The job's `DistributedOptimizer`, available from `on_train_start` on, for example for `Job.scheduler` and
        `samples`. All workers make the first access at the same place."""
        if self._optimizer is None:
            if isinstance(self.optimizers[0], DistributedOptimizer):
                self._optimizer = self.optimizers[0]
                return self._optimizer
            loader = self._loader
            known = order_of_the_job(loader) is not None
            size = getattr(loader, "batch_size", None) or (None if known else 1)
            with _all_to_train(self.model, self._trainer.callbacks):
                self._optimizer = self.job.DistributedOptimizer(self.optimizers[0], self.model, batch_size=size)
        return self._optimizer

    def on_train_start(self):
        if self._resume_loader():  # configure_optimizers requested the loader before the checkpoint was read
            iter(self._trainer.fit_loop._data_fetcher)
        self._expect_epochs()
        _ = self.distributed_optimizer  # all workers make it together
        self._trainer.callbacks.insert(0, FirstCallback(self))
        self._clip_means()
        self._share_log_dir()

    def _expect_epochs(self):
        """Errors: ConfigError if the trainer counts steps and the scheme gives workers different numbers of steps."""
        trainer = self._trainer
        if self.job.size == 1 or self._scheme.in_lockstep or trainer.fast_dev_run:
            return
        saves = [each for each in trainer.callbacks if isinstance(each, ModelCheckpoint)]
        for found, name, instead in (
                (trainer.max_steps != -1, "max_steps", "max_epochs"),
                (isinstance(trainer.val_check_interval, int), "an integer val_check_interval",
                 "check_val_every_n_epoch"),
                (getattr(trainer, "_val_check_time_interval", None), "a val_check_interval of time",
                 "check_val_every_n_epoch"),
                (any(each._every_n_train_steps > 0 or each._train_time_interval for each in saves),
                 "ModelCheckpoint by steps or time", "every_n_epochs"),
                (any(isinstance(each, Timer) for each in trainer.callbacks), "max_time", "max_epochs")):
            if found:
                raise ConfigError(f"workers of {self._scheme.name} take different numbers of steps, so {name} would come at "
                                  f"different times; set {instead} instead")

    def process_dataloader(self, dataloader):
        trainer = self._trainer
        if not trainer.training:
            return part_loader(self.job, dataloader) if self._divides else dataloader
        self._expect_one_loader()
        self._loader = dataloader
        if self._divides:
            divide = overfit_loader if trainer.overfit_batches > 0 else training_loader
            self._loader = divide(self.job, dataloader)
        order = order_of_the_job(self._loader)
        if order is not None and not has_length(order):
            self._expect_no_length()
        self._resume_loader()
        return self._loader

    def _expect_one_loader(self):
        if self._loader is not None and self._optimizer is not None:
            raise ConfigError("SyncopateStrategy takes its training loader once; leave out "
                              "reload_dataloaders_every_n_epochs")
        if self._loader is not None:
            raise ConfigError("SyncopateStrategy takes one training loader, found several; join datasets by "
                              "torch.utils.data.ConcatDataset, or give one dataset samples of all")

    def _expect_no_length(self):
        """Errors: ConfigError if samples are leased and the trainer or the script needs the length or a fraction of an
        epoch."""
        trainer = self._trainer
        for found, name in (
                (isinstance(trainer.limit_train_batches, float) and trainer.limit_train_batches != 1.0,
                 "a limit_train_batches that is a fraction"),
                (isinstance(trainer.val_check_interval, float) and trainer.val_check_interval != 1.0,
                 "a val_check_interval that is a fraction"),
                (self._makes_optimizers, "trainer.estimated_stepping_batches")):
            if found:
                raise ConfigError(f"an epoch of leased samples has no length, so {name} is not possible; choose "
                                  "SyncopateStrategy(options={\"data-order\": \"fixed\"}), or leave it out")

    def _resume_loader(self):
        """Moves the loader to the position at which a checkpoint resumes fit; later epochs follow by themselves.
        Returns True if the position changed."""
        loop = self._trainer.fit_loop
        epochs, batches = loop.epoch_progress.current, loop.epoch_loop.batch_progress
        if epochs.started == epochs.processed:
            place = (epochs.processed, 0)
        elif batches.is_last_batch:
            place = (epochs.processed + 1, 0)
        else:
            place = (epochs.processed, batches.current.processed)
        earlier, self._place = self._place, place
        order = order_of_the_job(self._loader)
        if place == earlier or order is None:
            return False
        if has_length(order) and place[1] > 0 and self._saved_by != self.job.size:
            raise ConfigError(f"the checkpoint was saved in the middle of an epoch by {self._saved_by} workers, found "
                              f"{self.job.size}: start as many, or go on from the end of an epoch")
        if has_length(order):  # the loader can resume, but not by the methods that Lightning looks for
            warnings.filterwarnings("ignore", "You're resuming from a checkpoint that ended before the epoch ended")
        resume_order(self._loader, *place)
        return True

    def on_validation_start(self):
        """Aligns before callbacks swap weights for averages, which a later alignment would exchange."""
        self._align("a validation")

    def end_loops(self):
        """Waits for the loops of all workers; the module then holds the job's model."""
        self._align("the end of training")
        self.distributed_optimizer.finish()

    def on_train_end(self):
        if self._scheme.synchronizes:  # callbacks have replaced the job's weights by averages of each worker
            self.job.broadcast_parameters(self.model)
        self._share_paths()

    def _share_log_dir(self):
        """Stores `Trainer.log_dir`, which broadcasts the same string or None in each step: steps then use the copy."""
        shared = self._trainer.log_dir
        self._log_dirs = {self._sent: shared}

    def _share_paths(self):
        """Copies the checkpoint paths of worker 0 to all workers: its files are named by its number of steps."""
        saves = [each for each in self._trainer.callbacks if isinstance(each, ModelCheckpoint)]
        for each, paths in zip(saves, self.broadcast([[getattr(each, name) for name in _PATHS] for each in saves])):
            for name, path in zip(_PATHS, paths):
                setattr(each, name, path)

    def on_exception(self, exception):
        if isinstance(exception, KeyboardInterrupt) and self._optimizer is not None:
            self._optimizer.abandon(exception)  # Lightning ends the script as if it had no error

    # Steps.

    def training_step(self, *args, **kwargs):
        samples = self._expected_weight(args[0] if args else next(iter(kwargs.values())))
        self._first_samples = self._samples and self._first_samples or samples
        self._samples += samples
        self._batch_samples = samples
        self._scale = samples / self._first_samples if self._first_samples else 1
        with self._step():
            return super().training_step(*args, **kwargs)

    def validation_step(self, *args, **kwargs):
        with self._step():
            return super().validation_step(*args, **kwargs)

    def test_step(self, *args, **kwargs):
        with self._step():
            return super().test_step(*args, **kwargs)

    def predict_step(self, *args, **kwargs):
        with self._step():
            return super().predict_step(*args, **kwargs)

    @contextlib.contextmanager
    def _step(self):
        self._in_step = True
        try:
            yield
        finally:
            self._in_step = False

    def _expected_weight(self, batch):
        weight = self._weight(batch)
        if isinstance(weight, torch.Tensor):
            weight = weight.item()
        if weight != int(weight) or weight < 0:
            raise ConfigError(f"a batch weighs a whole number of samples from 0 on, found {weight}; mend the "
                              "function weight")
        return int(weight)

    @property
    def _accumulates(self):
        return self._trainer.accumulate_grad_batches > 1 and self.lightning_module.automatic_optimization

    def backward(self, closure_loss, *args, **kwargs):
        """Scales the loss so that each accumulated batch counts by its weight, also if fewer batches than usual
        accumulate. Gradients are relative to the weight of the first batch; `_gradients_are_there` divides them."""
        if self._accumulates:
            closure_loss = closure_loss * (self._trainer.accumulate_grad_batches * self._scale)
        return super().backward(closure_loss, *args, **kwargs)

    def optimizer_step(self, optimizer, closure, model=None, **kwargs):  # noqa: ARG002 (there is only one)
        module = model or self.lightning_module

        def gradients():
            result = closure()
            self._gradients_are_there(module)
            return result

        result = self.precision_plugin.optimizer_step(Stepper(self), model=module, closure=gradients, **kwargs)
        epoch = self._trainer.fit_loop.epoch_loop
        if module.automatic_optimization and epoch._num_ready_batches_reached():
            self._align("the end of an epoch")  # before a scheduler changes the learning rate
        return result

    def _gradients_are_there(self, module):
        """Runs after the backward passes, before hooks and clipping."""
        if self._accumulates and self._samples > 0:
            with torch.no_grad():
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter.grad.mul_(self._first_samples / self._samples)
        if self._trainer.gradient_clip_val or is_overridden("configure_gradient_clipping", module):
            self.distributed_optimizer.synchronize(weight=self._samples)

    def _clip_means(self):
        """Also synchronizes before `clip_gradients` in manual optimization, because no hook runs before it."""
        clip = self.precision_plugin.clip_gradients

        def clip_means(optimizer, clip_val=0.0, *arguments, **options):
            if clip_val > 0 and not self.lightning_module.automatic_optimization:
                self.distributed_optimizer.synchronize(weight=self._weight_of_step())
            return clip(optimizer, clip_val, *arguments, **options)

        self.precision_plugin.clip_gradients = clip_means

    def _weight_of_step(self):
        """Returns the weight of the batches since the last step, or of the last batch for further steps in it."""
        return self._samples or self._batch_samples

    def take_step(self):
        """Takes a step; runs after `_gradients_are_there`."""
        weight, self._samples = self._weight_of_step(), 0
        self._steps_since_alignment = True
        self.distributed_optimizer.step(weight=weight)

    # Collectives. Lightning calls them on all workers or on none.

    def _align(self, place):
        """Waits for all workers, unless no step has followed the last alignment."""
        if self._steps_since_alignment and not self.is_failing:
            self._steps_since_alignment = False
            self._optimizer.align(place)

    def _expect_no_step(self, what):
        if self._in_step and self.job.size > 1:
            raise ConfigError(f"{what} within a step: workers take different numbers of steps; call it at the end of "
                              "an epoch")

    def reduce(self, tensor, group=None, reduce_op="mean"):  # noqa: ARG002 (all workers)
        """Reduces a tensor over all workers; within a step, and in its hooks, returns this worker's own tensor."""
        in_step = self._in_step or getattr(self.lightning_module, "_current_fx_name", None) in _HOOKS_OF_STEPS
        return tensor if in_step else self._reduced(tensor, reduce_op)

    def reduce_boolean_decision(self, decision, all=True):  # noqa: A002 (Lightning's name)
        """Combines the decisions of a callback that runs on all workers: True if all, or any, of them agree."""
        agree = int(self._reduced(torch.tensor(int(decision)), "sum"))
        return agree == (1 if self.is_failing else self.job.size) if all else agree > 0

    def _reduced(self, tensor, reduce_op):
        if not isinstance(tensor, torch.Tensor) or self.job.size == 1 or self.is_failing:
            return tensor
        name = str(getattr(reduce_op, "name", reduce_op)).lower()
        mean = name in ("mean", "avg")
        self._align("a reduction")
        reduced = self.job.allreduce(tensor.detach().clone(), "sum" if mean else name)
        return reduced / self.job.size if mean else reduced  # the mean of counts is also not an integer

    def barrier(self, name=None):
        """Waits for all workers; within a step it has no effect."""
        if not self._in_step and not self.is_failing:
            self._align(f"barrier {name}")
            self.job.barrier()

    def broadcast(self, obj, src=0):
        if self.job.size == 1 or self.is_failing:
            return obj
        if self._in_step and isinstance(obj, (str, type(None))) and obj in self._log_dirs:
            return self._log_dirs[obj]
        self._expect_no_step("broadcast")
        self._sent = obj
        self._align("a broadcast")
        return shared_object(self.job.everyone, obj, src)

    def all_gather(self, tensor, group=None, sync_grads=False):  # noqa: ARG002 (all workers)
        """Stacks the tensors of all workers, which have the same shape, along a new first dimension."""
        if sync_grads:
            raise ConfigError("all_gather(sync_grads=True) is not supported by SyncopateStrategy; compute the loss of "
                              "each worker's own samples")
        self._expect_no_step("all_gather")
        self._align("all_gather")
        return torch.stack(self.job.allgather(tensor)).to(tensor.device)

    def _gather_all(self, tensor, group=None):  # noqa: ARG002 (all workers)
        """Gathers the tensors of all workers by rank, for torchmetrics. Their shapes may differ."""
        self._expect_no_step("a metric's compute")
        self._align("a metric")
        shapes = self.job.allgather(torch.tensor(tensor.shape, dtype=torch.int64)) if tensor.dim() else []
        most = [int(each) for each in torch.stack(shapes).max(0).values] if shapes else []
        padded = torch.zeros(most, dtype=tensor.dtype)
        padded[tuple(slice(0, length) for length in tensor.shape)] = host_values(tensor)
        parts = self.job.allgather(padded)
        return [part[tuple(slice(0, int(length)) for length in shape)].to(tensor.device)
                for part, shape in zip(parts, shapes or [()] * len(parts))]

    # Checkpoints. Worker 0 writes them.

    def lightning_module_state_dict(self):
        self._align("a checkpoint")
        return super().lightning_module_state_dict()

    def save_checkpoint(self, checkpoint, filepath, storage_options=None):
        super().save_checkpoint({**checkpoint, _WORKERS: self.job.size}, filepath, storage_options=storage_options)

    def load_checkpoint(self, *arguments, **options):
        checkpoint = super().load_checkpoint(*arguments, **options)
        self._saved_by = checkpoint.get(_WORKERS, self.job.size)
        return checkpoint

    def teardown(self):
        super().teardown()
        if self._divides:
            self._trainer._accelerator_connector.use_distributed_sampler = True
        self._loader, self._divides = None, False


@contextlib.contextmanager
def _all_to_train(module, callbacks):
    """Unfreezes all layers within the block if a callback unfreezes some later, so that the job includes them."""
    unfreezes = any(isinstance(each, BaseFinetuning) for each in callbacks)
    frozen = [each for each in module.parameters() if unfreezes and not each.requires_grad and each.dtype in EXCHANGED]
    for each in frozen:
        each.requires_grad_(True)
    try:
        yield
    finally:
        for each in frozen:
            each.requires_grad_(False)


def _has_statistics(module):
    return any(isinstance(each, torch.nn.modules.batchnorm._BatchNorm) for each in module.modules())


def _samples_of(batch):
    try:
        return extract_batch_size(batch)
    except Exception as error:  # the class depends on the version
        raise ConfigError(f"Lightning finds no number of samples in a batch of {type(batch).__name__}; pass "
                          "SyncopateStrategy(weight=...), a function of the batch") from error
