"""Training scripts with several optimizers, for several_test.py: several_scripts.py NAME [ARGUMENT...]. Each prints what the test
checks."""
import torch
import syncopate_torch as syncopate
from torch.nn import functional

from calls import run_calls, say

STEPS = 6


def problem():
    """Returns noise and points for 6 steps of 8 samples, a generator, and a discriminator."""
    torch.manual_seed(5)
    generator = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    discriminator = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    return torch.randn(STEPS, 8, 3), torch.randn(STEPS, 8, 2), generator, discriminator


def optimizers_of(generator, discriminator):
    return (torch.optim.Adam(generator.parameters(), lr=0.02),
            torch.optim.SGD(discriminator.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01))


def parameters_of(*modules):
    return [value for module in modules for parameter in module.parameters() for value in parameter.detach().flatten().tolist()]


def part_of(rank):
    """Returns the worker's part of the eight samples of a step: five of worker 0, three of worker 1."""
    return slice(0, 5) if rank == 0 else slice(5, 8)


def losses(generator, discriminator, noise, points):
    """Returns functions that compute the loss of the discriminator and that of the generator."""
    def of_discriminator():
        made = discriminator(generator(noise).detach())
        return functional.softplus(-discriminator(points)).mean() + functional.softplus(made).mean()

    return of_discriminator, lambda: functional.softplus(-discriminator(generator(noise))).mean()


def take_steps(optimizers, modules, noise, points, count=STEPS, between=lambda _step: None):
    for step in range(count):
        of_discriminator, of_generator = losses(*modules, noise[step], points[step])
        for optimizer, loss in ((optimizers[1], of_discriminator), (optimizers[0], of_generator)):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step(weight=noise.shape[1])
        between(step)


def trains(scheme, *options):
    """Options: NAME=VALUE of the scheme; `short`: worker 1 does not take the last two steps; `aligns`: the same, and then both call
    `align` and go on; `leads`: the discriminator's optimizer is made first."""
    given = dict(option.split("=") for option in options if "=" in option)
    job = syncopate.init(scheme, options=given)
    noise, points, *modules = problem()
    own = optimizers_of(*modules)
    made = {index: job.DistributedOptimizer(own[index], modules[index], batch_size=8)
            for index in ((1, 0) if "leads" in options else (0, 1))}
    noise, points = noise[:, part_of(job.rank)], points[:, part_of(job.rank)]
    is_short = job.rank == 1 and ("short" in options or "aligns" in options)
    take_steps(made, modules, noise, points, STEPS - 2 * is_short)
    if "aligns" in options:
        made[1].align()
        take_steps(made, modules, noise, points, 2)
    made[0].finish()
    say(rank=job.rank, generator=parameters_of(modules[0]), discriminator=parameters_of(modules[1]),
        steps=job.summary()["steps"])


def averages():
    """Trains a further module with running statistics, whose mean must be by samples."""
    job = syncopate.init("ssgd")
    noise, points, generator, _ = problem()
    judge = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
    leading = job.DistributedOptimizer(torch.optim.SGD(generator.parameters(), lr=0.1), generator, batch_size=8)
    further = job.DistributedOptimizer(torch.optim.SGD(judge.parameters(), lr=0.1), judge)
    part = part_of(job.rank)
    judge(points[0][part]).mean().backward()
    further.step(weight=part.stop - part.start)
    generator(noise[0][part]).mean().backward()
    leading.step(weight=part.stop - part.start)
    means = [points[0][part_of(rank)].mean(0) for rank in range(2)]
    expected = 0.1 * (5 * means[0] + 3 * means[1]) / 8
    say(rank=job.rank, found=judge[0].running_mean.tolist(), expected=expected.tolist())
    leading.finish()


def unused():
    """No worker uses one parameter of the further module, and only the second worker uses another one."""
    job = syncopate.init("ssgd")
    _, points, generator, _ = problem()
    torch.manual_seed(7)
    heads = torch.nn.ModuleList(torch.nn.Linear(2, 1) for _ in range(3))
    before = parameters_of(*heads)
    leading = job.DistributedOptimizer(torch.optim.SGD(generator.parameters(), lr=0.1), generator, batch_size=8)
    further = job.DistributedOptimizer(torch.optim.SGD(heads.parameters(), lr=0.1, weight_decay=0.5), heads)
    heads[job.rank](points[0][part_of(job.rank)]).mean().backward()
    further.step(weight=5 if job.rank == 0 else 3)
    say(rank=job.rank, before=before, after=parameters_of(*heads), never=heads[2].weight.grad is None)
    leading.finish()


def refused(what):
    job = syncopate.init(*{"scheme": ("esync",), "rounds": ("local-sgd", {"global-lr": "0.5"})}.get(what, ("ssgd",)))
    _, points, generator, discriminator = problem()
    first, second = optimizers_of(generator, discriminator)
    leading = job.DistributedOptimizer(first, generator, batch_size=8)
    further = None
    try:
        if what == "parameters":
            job.DistributedOptimizer(torch.optim.SGD(generator.parameters(), lr=0.1), generator)
        elif what == "options":
            job.DistributedOptimizer(second, discriminator, scheme="esync")
        else:
            further = job.DistributedOptimizer(second, discriminator)
        if what == "rates":
            second.param_groups[0]["lr"] = 0.1 / (1 + job.rank)
        if what == "nan" and job.rank == 1:
            points[0] = float("nan")
        if what == "own step":
            second.step()
        if what == "late":
            leading.finish()
        discriminator(points[0]).mean().backward()
        further.step()
        raise SystemExit("it is not refused")
    except syncopate.Error as error:
        say(rank=job.rank, kind=type(error).__name__, text=str(error))
    leading.finish()


def goes_on(part):
    """Takes the first half of the steps and saves the state of each worker, or takes the second half from it in another job."""
    job = syncopate.init("ssgd")
    if part == "second":
        job.load_state_dict(torch.load(f"state-{job.rank}.pt"))
    noise, points, *modules = problem()
    made = [job.DistributedOptimizer(own, module, batch_size=8) for own, module in zip(optimizers_of(*modules), modules)]
    half, part_here = STEPS // 2, part_of(job.rank)
    steps = slice(0, half) if part == "first" else slice(half, STEPS)
    take_steps(made, modules, noise[steps, part_here], points[steps, part_here], half)
    made[0].finish()
    if part == "first":
        torch.save(job.state_dict(), f"state-{job.rank}.pt")
    say(rank=job.rank, parameters=parameters_of(*modules))


if __name__ == "__main__":
    run_calls(globals())
