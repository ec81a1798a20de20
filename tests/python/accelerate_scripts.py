"""Training scripts for accelerate_test.py: accelerate_scripts.py NAME [ARGUMENT...]. Each prints its results."""
import safetensors.torch
import scripts
import torch
from accelerate import Accelerator, skip_first_batches
from calls import run_calls, say
from torch.nn import functional

import syncopate_torch as syncopate
from syncopate_torch.accelerate import rounds


def loader(job, batch_size):
    points, labels, network = scripts.problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=batch_size)
    return points, labels, network, data


def whole_batch(scheme="ssgd", made_by="block"):
    """Trains with the whole dataset in each step."""
    job = syncopate.init(scheme)
    _, _, network, data = loader(job, scripts.SAMPLES)
    accelerator = Accelerator()
    optimizer = scripts.sgd(network)
    if made_by == "script":
        optimizer = job.DistributedOptimizer(optimizer, network)
    model, optimizer, data = accelerator.prepare(network, optimizer, data)
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer) as training:
        for _ in range(scripts.STEPS):
            for x, y in data:
                accelerator.backward(functional.cross_entropy(model(x), y))
                training.step(weight=len(x))
                optimizer.zero_grad()
    say(rank=job.rank, size=job.size, parameters=scripts.parameters_of(network))


def clipped():
    """Trains in steps of two accumulated batches, with clipped gradients and a schedule."""
    job = syncopate.init("ssgd")
    _, _, network, data = loader(job, scripts.SAMPLES // 2)
    accelerator = Accelerator(gradient_accumulation_steps=2)
    optimizer = scripts.sgd(network)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    model, optimizer, data, schedule = accelerator.prepare(network, optimizer, data, schedule)
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer) as training:
        for _ in range(scripts.STEPS):
            for x, y in data:
                with accelerator.accumulate(model):
                    accelerator.backward(functional.cross_entropy(model(x), y))
                    training.synchronize(weight=len(x))
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 0.1)
                    training.step(weight=len(x))
                    schedule.step()
                    optimizer.zero_grad()
    say(rank=job.rank, parameters=scripts.parameters_of(network), rate=schedule.get_last_lr()[0])


def learns(scheme):
    """The block `rounds` joins the job itself. Workers take different numbers of steps, and test after each epoch."""
    points, labels, network = scripts.problem()
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(network, torch.optim.SGD(network.parameters(), lr=0.1))
    steps, accuracies = 0, []
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer, scheme=scheme, batch_size=8) as training:
        data = training.job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=16)
        for _ in range(20):
            for x, y in data:
                accelerator.backward(functional.cross_entropy(model(x), y))
                training.step(weight=len(x))
                optimizer.zero_grad()
                steps += 1
            training.align()
            accuracies.append(scripts.accuracy(network, points, labels))
    say(rank=training.job.rank, steps=steps, accuracies=accuracies, parameters=scripts.parameters_of(network))


def saved():
    """Saves the model by Accelerate in the block, and prints the weights that each file lacks. Two weights are one tensor."""
    job = syncopate.init("ssgd")
    points, labels, inner = scripts.problem()
    network = torch.nn.ModuleDict({"first": inner, "norm": torch.nn.BatchNorm1d(3), "again": torch.nn.Linear(6, 8)})
    network["again"].weight = inner[0].weight
    accelerator = Accelerator()
    own = accelerator.get_state_dict
    model, optimizer = accelerator.prepare(network, scripts.sgd(network))
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer, batch_size=len(points)) as training:
        accelerator.backward(functional.cross_entropy(network["norm"](inner(points)), labels))
        training.step()
        training.align()
        right = network.state_dict()
        lacks = []
        for save in (lambda folder: accelerator.save_model(model, folder), accelerator.save_state):
            folder = f"{job.rank}-{len(lacks)}"
            save(folder)
            file = safetensors.torch.load_file(f"{folder}/model.safetensors")
            lacks.append([name for name in right if name not in file or not torch.equal(file[name], right[name])])
    say(rank=job.rank, lacks=lacks, restored=accelerator.get_state_dict == own)


def leaves_an_epoch():
    """Leaves the first epoch early; prints the samples of each epoch."""
    job = syncopate.init("ssgd")
    dataset = torch.utils.data.TensorDataset(torch.arange(50))
    data = Accelerator().prepare(job.partition_dataset(dataset, batch_size=8))
    epochs = []
    for epoch in range(4):
        epochs.append([])
        for [batch] in data:
            epochs[-1] += batch.tolist()
            if epoch == 0:
                break
    say(rank=job.rank, epochs=epochs)


def skips(processes):
    """Runs three epochs of a loader with `processes` processes, and skips two batches of the second epoch. Prints the samples,
    the position that the job has after each epoch and within the fourth, and the weights of the batches."""
    job = syncopate.init("ssgd")
    dataset = torch.utils.data.TensorDataset(torch.arange(50))
    data = job.partition_dataset(dataset, batch_size=8, num_workers=int(processes))
    whole, skipped, again = data, skip_first_batches(data, 2), data
    epochs, places, weights = [], [], []
    for loader in (whole, skipped, again):
        epochs.append([])
        for [batch] in loader:
            epochs[-1] += batch.tolist()
            weights.append((job.batch or (0, None))[1])
        places.append(data.batch_sampler.epoch)
    for [batch] in data:
        part = job.state_dict()["parts"]["sampler.0"]
        places.append([part["epoch"], part["step"]])
        break
    prepared = skip_first_batches(Accelerator().prepare(data), 2)
    say(rank=job.rank, epochs=epochs, places=places, weights=weights, length=len(skipped),
        prepared=sum(len(batch) for [batch] in prepared))


def disabled():
    _, _, network = scripts.problem()
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(network, scripts.sgd(network))
    points, labels, _ = scripts.problem()
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer, enabled=False) as training:
        for _ in range(scripts.STEPS):
            accelerator.backward(functional.cross_entropy(model(points), labels))
            training.step(weight=len(points))
            optimizer.zero_grad()
    say(rank=0, parameters=scripts.parameters_of(network))


def one_word():
    """Uses no scheme: Accelerate divides the data and wraps the model in DistributedDataParallel over the existing group."""
    torch.distributed.init_process_group("syncopate")
    points, labels, network = scripts.problem()
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(points, labels), batch_size=scripts.SAMPLES // 2)
    accelerator = Accelerator(cpu=True)
    model, optimizer, data = accelerator.prepare(network, scripts.sgd(network), data)
    for _ in range(scripts.STEPS):
        for x, y in data:
            accelerator.backward(functional.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
    say(rank=accelerator.process_index, size=accelerator.num_processes, model=type(model).__name__,
        parameters=scripts.parameters_of(network), gathered=accelerator.gather(torch.tensor([len(x)])).tolist())


def several_processes():
    """Calls `rounds` although Accelerate has made a process group of its own."""
    accelerator = Accelerator(cpu=True)
    _, _, network = scripts.problem()
    rounds(accelerator=accelerator, model=network, optimizer=scripts.sgd(network))


if __name__ == "__main__":
    run_calls(globals())
