"""Training scripts for lightning_test.py: lightning_scripts.py NAME [ARGUMENT...]. Each prints its results."""
import pathlib

import lightning
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import syncopate_torch as syncopate
from syncopate_torch.lightning import SyncopateStrategy

import calls
import scripts

QUIET = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False,
         "enable_model_summary": False}


class Points(lightning.LightningModule):
    def __init__(self, rate=0.2, fails_at=None):
        super().__init__()
        self.points, self.labels, self.network = scripts.problem()
        self._rate, self._fails_at = rate, fails_at
        self.steps, self.validations, self.samples, self.rates = [0], 0, [], []

    def loss(self, batch):
        x, y = batch
        return functional.cross_entropy(self.network(x), y)

    def training_step(self, batch, index):
        self.steps[-1] += 1
        if self._fails_at == index:
            raise ValueError("the loss of this script is strange")
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _index):
        self.samples.append(len(batch[0]))
        self.log("score", batch[0][:, 0].mean(), sync_dist=True)

    def on_validation_epoch_start(self):
        self.samples = []

    def on_validation_epoch_end(self):
        self.validations += 1

    def on_train_epoch_end(self):
        self.steps.append(0)
        self.rates.append(self.optimizers().param_groups[0]["lr"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.network.parameters(), lr=self._rate, momentum=0.9)


def dataset(samples=scripts.SAMPLES):
    points, labels, _ = scripts.problem()
    return TensorDataset(points[:samples], labels[:samples])


def trainer(scheme=None, epochs=scripts.STEPS, weight=None, **options):
    options = {"enable_checkpointing": False, "num_sanity_val_steps": 0, **QUIET, **options}
    return lightning.Trainer(strategy=SyncopateStrategy(scheme, weight=weight), max_epochs=epochs, **options)


def say(training, model, **facts):
    own = torch.tensor(scripts.parameters_of(model.network))
    equal = all(torch.equal(each, own) for each in training.strategy.job.allgather(own))
    calls.say(rank=training.global_rank, parameters=own.tolist(), equal=equal, **facts)


class Distributed(Points):
    """A module that makes the job's optimizer itself."""

    def configure_optimizers(self):
        job = self.trainer.strategy.job
        return job.DistributedOptimizer(super().configure_optimizers(), self, batch_size=scripts.SAMPLES // 2)


def whole_batch(scheme="ssgd", made_by="strategy"):
    """Trains with the whole dataset in each step; each worker has half of it."""
    training, model = trainer(scheme), Distributed() if made_by == "script" else Points()
    training.fit(model, DataLoader(dataset(), batch_size=scripts.SAMPLES // 2, shuffle=True))
    say(training, model, size=training.world_size)


def clipped():
    """Trains in the same way, with clipped gradients and a schedule by epochs."""

    class Scheduled(Points):
        def configure_optimizers(self):
            optimizer = super().configure_optimizers()
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)]

    training, model = trainer("ssgd", gradient_clip_val=0.1), Scheduled()
    training.fit(model, DataLoader(dataset(), batch_size=scripts.SAMPLES // 2))
    say(training, model, rates=model.rates)


def clipped_by_itself():
    """Trains in the same way as `clipped`, with a module that steps its optimizer itself."""

    class Manual(Points):
        automatic_optimization = False

        def training_step(self, batch, _index):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            self.clip_gradients(optimizer, gradient_clip_val=0.1, gradient_clip_algorithm="norm")
            optimizer.step()

        def on_train_epoch_end(self):
            super().on_train_epoch_end()
            self.lr_schedulers().step()

        def configure_optimizers(self):
            optimizer = super().configure_optimizers()
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)]

    training, model = trainer("ssgd"), Manual()
    training.fit(model, DataLoader(dataset(), batch_size=scripts.SAMPLES // 2))
    say(training, model)


def averaged(scheme):
    """Trains with a callback that leaves averages of this worker's weights in the module."""

    class Before(lightning.Callback):
        def on_train_end(self, _trainer, module):
            module.of_the_job = scripts.parameters_of(module.network)

    class Averaged(Points):
        def on_train_end(self):
            self.averages = scripts.parameters_of(self.network)

    callbacks = [Before(), lightning.pytorch.callbacks.EMAWeightAveraging(decay=0.9)]
    training, model = trainer(scheme, epochs=3, callbacks=callbacks), Averaged()
    training.fit(model, DataLoader(dataset(), batch_size=4, shuffle=True))
    say(training, model, averages=model.averages, of_the_job=model.of_the_job)


def accumulated():
    """Trains with the whole dataset in each step, accumulated over batches of 24 and 8 samples."""
    training, model = trainer("ssgd", accumulate_grad_batches=3), Points()
    training.fit(model, DataLoader(dataset(), batch_size=24))
    say(training, model)


class Waiting(Points):
    """Waits for all workers after a validation, as a checkpoint would."""

    def on_validation_end(self):
        self.trainer.strategy.barrier("after a test")


def tested_between_passes(interval):
    """Validates after every `interval` batches (0: never), while a step takes four batches."""
    training = trainer("ssgd", epochs=2, accumulate_grad_batches=4, limit_val_batches=1.0 if int(interval) else 0,
                       val_check_interval=int(interval) or None, check_val_every_n_epoch=None)
    model = Waiting()
    training.fit(model, DataLoader(dataset(), batch_size=4), DataLoader(dataset(61), batch_size=8))
    say(training, model, validations=model.validations)


class Ordered(Points):
    """Records which samples it has trained on in each epoch."""

    def on_train_epoch_start(self):
        self.orders.append([])

    def training_step(self, batch, index):
        self.orders[-1] += [self.points.tolist().index(point) for point in batch[0].tolist()]
        return super().training_step(batch, index)


def goes_on():
    """Prints for several kinds of loaders the orders of samples of an uninterrupted fit, of a fit that ends with a checkpoint,
    and of a fit that begins with this checkpoint, each in its own job."""

    def orders(kind, epochs, checkpoint=None):
        training, model = trainer("ssgd", epochs=epochs), Ordered()
        model.orders = []
        job = training.strategy.job
        loader = {"plain": lambda: DataLoader(dataset(), batch_size=8),
                  "sampler": lambda: DataLoader(dataset(), batch_size=8, sampler=job.sampler(dataset()), num_workers=2),
                  "partition": lambda: job.partition_dataset(dataset(), batch_size=8)}[kind]()
        training.fit(model, loader, ckpt_path=checkpoint)
        training.save_checkpoint("last.ckpt")
        job.leave()
        return model.orders

    calls.say(**{kind: [orders(kind, 4), orders(kind, 2), orders(kind, 4, "last.ckpt")]
                   for kind in ("plain", "sampler", "partition")})


class OneCycle(Points):
    """Follows a schedule that depends on the total number of steps, and records which samples it has trained on."""

    def __init__(self):
        super().__init__()
        self.order = []

    def training_step(self, batch, index):
        self.order += [self.points.tolist().index(point) for point in batch[0].tolist()]
        return super().training_step(batch, index)

    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def within_an_epoch(checkpoint=None, kind="plain", folder="within"):
    """Trains for three epochs with a checkpoint after every third step, or the rest of them from `checkpoint`."""
    saves = lightning.pytorch.callbacks.ModelCheckpoint(folder, "{step}", every_n_train_steps=3, save_top_k=-1)
    training, model = trainer("ssgd", epochs=3, callbacks=[saves], enable_checkpointing=True), OneCycle()
    job = training.strategy.job
    loader = {"plain": lambda: DataLoader(dataset(), batch_size=8, num_workers=2),
              "drop_last": lambda: DataLoader(dataset(60), batch_size=8, drop_last=True),
              "sampler": lambda: DataLoader(dataset(), batch_size=8, sampler=job.sampler(dataset()), num_workers=2),
              "partition": lambda: job.partition_dataset(dataset(), batch_size=8)}[kind]()
    training.fit(model, loader, ckpt_path=checkpoint and f"{folder}/step={checkpoint}.ckpt")
    return training, model


def rest_of_an_epoch(*checkpoint):
    training, model = within_an_epoch(*checkpoint)
    say(training, model, order=model.order, steps=training.global_step)


def rests_of_epochs():
    """Does so with several kinds of loaders, from the start and from a checkpoint, each time in its own job."""

    def found(kind, checkpoint):
        training, model = within_an_epoch(checkpoint, kind, kind)
        training.strategy.job.leave()
        return [model.order, scripts.parameters_of(model.network), training.global_step]

    calls.say(**{kind: [found(kind, None), found(kind, 12)] for kind in ("drop_last", "sampler", "partition")})


def parts_of_epochs():
    """Trains on half of each epoch, with validations within it."""
    training, model = trainer("ssgd", epochs=2, limit_train_batches=0.5, val_check_interval=0.5), OneCycle()
    training.fit(model, DataLoader(dataset(), batch_size=4), DataLoader(dataset(), batch_size=8))
    say(training, model, order=model.order, validations=model.validations)


def overfits():
    training, model = trainer("ssgd", epochs=3, overfit_batches=2), OneCycle()
    training.fit(model, DataLoader(dataset(), batch_size=4, shuffle=True))
    say(training, model, order=model.order)


def epochs(scheme):
    """Trains workers of unequal speed, with a validation and a checkpoint after each epoch."""
    training = trainer(scheme, epochs=3, enable_checkpointing=True, default_root_dir=scheme, callbacks=[
        lightning.pytorch.callbacks.ModelCheckpoint(save_last=True)])
    model = Points(rate=0.05)
    points, labels, _ = scripts.problem()
    before = functional.cross_entropy(model.network(points), labels).item()
    training.fit(model, DataLoader(dataset(63), batch_size=4, shuffle=True), DataLoader(dataset(61), batch_size=8))
    saved = torch.load(f"{scheme}/checkpoints/last.ckpt", weights_only=True)
    same = all(torch.equal(value, saved["state_dict"][name]) for name, value in model.state_dict().items())
    score = training.callback_metrics["score"].item()
    say(training, model, validations=model.validations, steps=model.steps[:-1], score=score,
        before=before, loss=functional.cross_entropy(model.network(points), labels).item(), saved=same,
        validated=sum(model.samples), samples=training.strategy.distributed_optimizer.samples)


def tests_the_best():
    """Tests the best checkpoint. Workers take different numbers of steps, so their own numbers would give it different names."""

    class Tested(Points):
        test_step = Points.validation_step

    saves = lightning.pytorch.callbacks.ModelCheckpoint("best", monitor="score", save_top_k=2)
    training = trainer("esync", epochs=3, enable_checkpointing=True, callbacks=[saves])
    loader = DataLoader(dataset(61), batch_size=8)
    training.fit(Tested(rate=0.05), DataLoader(dataset(63), batch_size=4, shuffle=True), loader)
    training.test(ckpt_path="best", dataloaders=loader, verbose=False)
    calls.say(rank=training.global_rank, best=saves.best_model_path, all=sorted(saves.best_k_models),
                is_there=pathlib.Path(saves.best_model_path).is_file())


class Compared(Points):
    """Compares the replicas of all workers after each validation; logs in hooks of a step; may step its optimizer itself."""

    def __init__(self, manual):
        super().__init__(rate=0.05)
        self.automatic_optimization = not manual
        self.ends = []

    def training_step(self, batch, index):
        if self.automatic_optimization:
            return super().training_step(batch, index)
        self.steps[-1] += 1
        self.optimizers().zero_grad()
        self.manual_backward(self.loss(batch))
        self.optimizers().step()
        return None

    def on_train_batch_end(self, *_arguments):
        self.log("rank", float(self.trainer.global_rank), on_step=True, on_epoch=True, sync_dist=True)

    def on_before_optimizer_step(self, _optimizer):
        self.log("own", float(self.trainer.global_rank), on_step=True, sync_dist=True)

    def on_validation_end(self):
        own = torch.tensor(scripts.parameters_of(self.network))
        self.ends.append(all(torch.equal(own, each) for each in self.trainer.strategy.job.allgather(own)))


def validated(scheme, way):
    """Trains with a callback that puts averages of the weights into the module for each validation."""
    options = {} if way == "manual" else {"val_check_interval": 0.5}
    training = trainer(scheme, epochs=3, callbacks=[lightning.pytorch.callbacks.EMAWeightAveraging(decay=0.9)], **options)
    model = Compared(way == "manual")
    training.fit(model, DataLoader(dataset(), batch_size=4, shuffle=True), DataLoader(dataset(61), batch_size=8))
    say(training, model, ends=model.ends, own=training.callback_metrics["own"].item(),
        mean=training.callback_metrics["rank_epoch"].item())


def fails_while_a_callback_saves(rank):
    class Fails(Points):
        def on_train_batch_end(self, *_arguments):
            if self.trainer.global_rank == int(rank) and self.trainer.global_step >= 3:
                raise ValueError("the loss of this script is strange")

    saves = lightning.pytorch.callbacks.OnExceptionCheckpoint("on exception")
    trainer("ssgd", epochs=100, enable_checkpointing=True, callbacks=[saves]).fit(Fails(), DataLoader(dataset(), batch_size=4))


def one_batch():
    training, model = trainer("esync", fast_dev_run=True), Points()
    training.fit(model, DataLoader(dataset(), batch_size=4, shuffle=True), DataLoader(dataset(61), batch_size=8))
    say(training, model, steps=training.global_step)


def logs_in_each_step():
    """Reads the log folder, which is that of worker 0's logger, in each step."""

    class Logs(Points):
        def training_step(self, batch, index):
            self.folders.add(self.trainer.log_dir)
            return super().training_step(batch, index)

    strategy = SyncopateStrategy("esync")
    logger = lightning.pytorch.loggers.CSVLogger(f"logs of {strategy.job.rank}")
    training, model = lightning.Trainer(strategy=strategy, max_epochs=2, **{**QUIET, "logger": logger}), Logs()
    model.folders = set()
    training.fit(model, DataLoader(dataset(), batch_size=4, shuffle=True))
    calls.say(rank=training.global_rank, folders=sorted(model.folders))


def precise(precision):
    training, model = trainer("ssgd", precision=precision), Points()
    training.fit(model, DataLoader(dataset(), batch_size=scripts.SAMPLES // 2))
    say(training, model, types=sorted({str(parameter.dtype) for parameter in model.parameters()}))


def raises(rank):
    training = trainer("esync", epochs=100)
    fails = training.global_rank == int(rank)
    training.fit(Points(fails_at=3 if fails else None), DataLoader(dataset(), batch_size=4))


def interrupted(rank):
    """Raises KeyboardInterrupt in one worker, as Ctrl-C does."""

    class Interrupted(Points):
        def on_train_batch_end(self, *_arguments):
            if self.trainer.global_rank == int(rank):
                raise KeyboardInterrupt

    training = trainer("ssgd", epochs=100)
    training.fit(Interrupted(), DataLoader(dataset(), batch_size=4))


class Unfreezes(lightning.pytorch.callbacks.BaseFinetuning):
    """Unfreezes the first layer in the second epoch."""

    def freeze_before_training(self, module):
        self.freeze(module.network[0])

    def finetune_function(self, module, epoch, optimizer):
        if epoch == 1:
            self.unfreeze_and_add_param_group(module.network[0], optimizer)


def refused():
    """Prints the errors of fits that a job does not support, by name, in a job of one worker."""
    refusals = {}

    def fit(name, model=None, loader=None, **options):
        try:
            scheme = options.pop("scheme", None)
            trainer(scheme, **options).fit(model or Points(), loader or DataLoader(dataset(), batch_size=4))
        except Exception as error:
            refusals[name] = f"{type(error).__name__}: {error}"

    class Two(Points):
        automatic_optimization = False

        def configure_optimizers(self):
            return [super(Two, self).configure_optimizers() for _ in range(2)]

    class Normed(Points):
        def __init__(self):
            super().__init__()
            self.network.append(torch.nn.BatchNorm1d(3))

    class Without(Points):
        def configure_optimizers(self):
            return None

    class Lbfgs(Points):
        def configure_optimizers(self):
            return torch.optim.LBFGS(self.network.parameters())

    fit("devices", devices=3)
    fit("two optimizers", Two())
    fit("no optimizer", Without())
    fit("LBFGS", Lbfgs())
    fit("precision", precision="64-true")
    fit("sampler", loader=DataLoader(dataset(), batch_size=4, sampler=torch.utils.data.SubsetRandomSampler([1, 2, 3])))
    fit("weight", weight=lambda _batch: 0.5)
    fit("several loaders", loader=[DataLoader(dataset(), batch_size=4), DataLoader(dataset(), batch_size=8)])
    fit("finder", callbacks=[lightning.pytorch.callbacks.LearningRateFinder()])
    fit("averaging", Normed(), callbacks=[lightning.pytorch.callbacks.StochasticWeightAveraging(swa_lrs=0.1)])
    fit("batch norm", sync_batchnorm=True)
    fit("overfit", loader=syncopate.init().partition_dataset(dataset(), batch_size=4), overfit_batches=2)
    calls.say(rank=0, refused=refusals)


def refused_without_a_length():
    """Prints the errors of fits that need the length of an epoch, which leased samples do not have."""
    refusals, job = {}, syncopate.init("esync")
    for name, model, options in (("limit", Points(), {"limit_train_batches": 0.5}),
                                 ("interval", Points(), {"val_check_interval": 0.5}), ("estimated", OneCycle(), {})):
        try:
            trainer(**options).fit(model, DataLoader(dataset(), batch_size=4))
        except syncopate.ConfigError as error:
            refusals[name] = str(error)
    calls.say(rank=job.rank, refused=refusals)


def unfreezes(scheme):
    class Trainable(Points):
        def configure_optimizers(self):
            self.first, self.has_moved = self.network[0].weight.tolist(), []
            return torch.optim.SGD([each for each in self.parameters() if each.requires_grad], lr=0.1)

        def on_train_epoch_end(self):
            self.has_moved.append(self.network[0].weight.tolist() != self.first)

    training, model = trainer(scheme, epochs=2, callbacks=[Unfreezes()]), Trainable()
    training.fit(model, DataLoader(dataset(), batch_size=4))
    say(training, model, has_moved=model.has_moved)


def by_steps():
    trainer("esync", max_steps=5).fit(Points(), DataLoader(dataset(), batch_size=4))


def gathers():
    class Gathers(Points):
        def training_step(self, batch, index):
            self.all_gather(batch[0])
            return super().training_step(batch, index)

    trainer("esync").fit(Gathers(), DataLoader(dataset(), batch_size=4))


if __name__ == "__main__":
    calls.run_calls(globals())
