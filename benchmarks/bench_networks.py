"""Time of a round with networks, against two plain loops in PyTorch's own modules.

A client has 500 images. Ours is the library (`fedcore.runs.execute`) with one round. The loop that
the authors of FedRep wrote goes client by client, with a module, an optimiser, and for every batch
a pass through all layers, of which those that do not move only lose their gradients. PFLlib has the
same loop over a data loader. Neither moves images here. The three take turns. Beside them stands
the time in which the machine's best rate of products would do the arithmetic. On a core it is CPU
time, and one client; with ``--device cuda`` it is wall time, and ten clients that advance together,
all three on that device. The exit status is 1 when they end with other networks; the network for
CIFAR-100 has dropout, so that its ends are not compared. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np
from timing import interleaved, seconds

try:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
except ModuleNotFoundError:
    print("Networks need PyTorch: make env EXTRAS=deep.")
    sys.exit(0)

from fedcore import algorithms
from fedcore.deep import device as devices
from fedcore.deep import models
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.runs import execute
from fedcore.seeds import CLIENT, SERVER, child, root_of

SEED, BATCH = 3, 10
FAR = 1e-3  # of single precision after 50 to 550 steps
WIDTHS = {"cifar10_cnn": (64, 120, 64, 10), "cifar100_cnn": (128, 256, 128, 100)}


def forward(model: str) -> int:
    """Multiplications and additions of a forward pass, per image."""
    maps, first, second, classes = WIDTHS[model]
    convolutions = 28**2 * 64 * 75 + 10**2 * maps * 1600
    return 2 * (convolutions + 25 * maps * first + first * second + second * classes)


def module(model: str, w: np.ndarray, where: torch.device) -> nn.Sequential:
    """The network of PyTorch's modules at the parameters `w`."""
    maps, first, second, classes = WIDTHS[model]
    dropout = [nn.Dropout(0.6)] if model == "cifar100_cnn" else []
    net = nn.Sequential(
        nn.Conv2d(3, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, maps, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(25 * maps, first), nn.ReLU(),
        nn.Linear(first, second), nn.ReLU(), *dropout, nn.Linear(second, classes),
    )  # fmt: skip
    parts = torch.tensor(w).split([p.numel() for p in net.parameters()])
    for p, values in zip(net.parameters(), parts, strict=True):
        kernels = p.dim() == 4  # channels come last in our vector
        shape = (p.shape[0], *p.shape[2:], p.shape[1]) if kernels else p.shape
        p.data.copy_(values.view(shape).permute(0, 3, 1, 2) if kernels else values.view(shape))
    return net.to(where)


def vector(net: nn.Sequential) -> np.ndarray:
    """Return the parameters in the order of our vector."""
    ordered = (p.permute(0, 2, 3, 1) if p.dim() == 4 else p for p in net.parameters())
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in ordered])


class Case(NamedTuple):
    """What is timed.

    Attributes
    ----------
    model, name : str
        Network, and method.
    head_epochs, epochs : int
        Passes over the head alone, and after them over the body, or over all with FedAvg.
    """

    model: str
    name: str
    head_epochs: int
    epochs: int

    @property
    def settings(self) -> dict[str, int]:
        """Parameters of the method."""
        heads = {"head_epochs": self.head_epochs} if self.name == "fedrep" else {}
        return {"epochs": self.epochs, **heads}

    @property
    def passes(self) -> int:
        """Forward passes that are needed: for the heads one, and for a step three."""
        return 3 * self.epochs + (self.name == "fedrep")


CASES = {
    "CIFAR-10, fedrep, 10 and 1 epoch": Case("cifar10_cnn", "fedrep", 10, 1),
    "CIFAR-10, fedavg, 1 epoch": Case("cifar10_cnn", "fedavg", 0, 1),
    "CIFAR-100, fedrep, 10 and 5 epochs": Case("cifar100_cnn", "fedrep", 10, 5),
    "CIFAR-100, fedavg, 5 epochs": Case("cifar100_cnn", "fedavg", 0, 5),
}


def plain(data: Clients, case: Case, where: torch.device, loader: bool) -> Callable[[], np.ndarray]:
    """Return a round of a plain loop: epochs on the head, then on the body or on all.

    It gives the mean of the clients' bodies, and of all parameters where all move at once. With
    `loader` the batches come from PyTorch's data loader, as PFLlib has them.
    """
    root, all_at_once = root_of(SEED), case.name == "fedavg"
    samples = [torch.from_numpy(own).view(-1, 3, 32, 32).to(where) for own in data]
    labels = [torch.from_numpy(own).long().to(where) for own in data.labels or []]
    pairs = [list(zip(x, y, strict=True)) for x, y in zip(samples, labels, strict=True)]

    def batches(i: int, order: torch.Tensor) -> Iterable[Sequence[torch.Tensor]]:
        if loader:
            found: Iterable[Any] = DataLoader(pairs[i], BATCH, sampler=order.tolist())
            return found
        return ((samples[i][rows], labels[i][rows]) for rows in order.to(where).split(BATCH))

    def run() -> np.ndarray:
        found = np.mean([one(i) for i in range(len(data))], axis=0)
        return found if all_at_once else found[: models.sizes(case.model, 3072).body]

    def one(i: int) -> np.ndarray:
        first = int(np.random.default_rng(child(root, SERVER)).integers(2**63))
        rng = np.random.default_rng(child(root, CLIENT, i))
        net = module(case.model, start(case.model, first), where)
        head = list(net[-1].parameters())
        body = [p for p in net.parameters() if not any(p is q for q in head)]
        phases = [
            (head, body, case.head_epochs),
            (body + head * all_at_once, [] if all_at_once else head, case.epochs),
        ]
        for moving, still, epochs in phases:
            for p in moving + still:
                p.requires_grad_(any(p is q for q in moving))
            optimiser = torch.optim.SGD(moving, lr=0.01, momentum=0.5)
            for _ in range(epochs):
                for x, y in batches(i, torch.from_numpy(rng.permutation(len(labels[i])))):
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(net(x), y).backward()
                    optimiser.step()
        return vector(net)

    return run


def start(model: str, seed: int) -> np.ndarray:
    """Return the first network."""
    return models.start(model, 3072, seed, np.dtype(np.float32))


def ours(data: Clients, case: Case) -> Callable[[], np.ndarray]:
    """Return a round of the library, from which the client's network comes."""
    algorithm, problem = algorithms.get(case.name), Problem("one", data)
    given = {"model": case.model, "rounds": 1, "participation": 1.0, **case.settings}
    settings = algorithm.params(given)

    def run() -> np.ndarray:
        _, output = execute(algorithm, problem, settings, SEED)
        return np.asarray(output["body" if case.name == "fedrep" else "parameters"])

    return run


@click.command(help=__doc__.partition("\n\n")[0])
@click.option("--samples", default=500, show_default=True, help="Images of the client.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--device", default="cpu", show_default=True, help="cpu, together, cuda, mps, …")
@click.option("--clients", type=int, help="[default: 1 on a core, else 10]")
def main(samples: int, repeats: int, device: str, clients: int | None) -> None:
    os.environ[devices.VARIABLE] = device
    where, together = devices.read_device()
    torch.set_num_threads(1)
    rng, n = np.random.default_rng(0), clients or (10 if together else 1)
    images = [rng.standard_normal((samples, 3072)).astype(np.float32) for _ in range(n)]
    labels = [rng.integers(2, size=samples).astype(np.float32) for _ in range(n)]
    data = Clients(images, labels=labels)
    clock = "cpu" if where.type == "cpu" else "wall"

    square = torch.randn(4000, 4000, device=where) if clock == "wall" else torch.randn(1000, 1000)
    rate = 2 * len(square) ** 3 / seconds(lambda: (square @ square)[0, 0].item(), clock=clock)
    click.echo(f"rate of a square product in single precision: {rate / 1e9:.3g} GFlop/s")
    what = "a client round" if n == 1 else f"a round of {n} clients ({device})"
    click.echo(
        f"{what:36}{'ours s':>9}{'authors s':>11}{'ratio':>7}{'PFLlib s':>10}{'ratio':>7}"
        f"{'limit s':>9}{'share':>7}"
    )
    good = True
    for title, case in CASES.items():
        calls = {
            "ours": ours(data, case),
            "authors": plain(data, case, where, loader=False),
            "PFLlib": plain(data, case, where, loader=True),
        }
        times = interleaved(calls, repeats)
        mine, authors, pfllib = (median(getattr(times[name], clock)) for name in calls)
        slower = [times[name].over(times["ours"], clock) for name in ("authors", "PFLlib")]
        limit = case.passes * forward(case.model) * samples * n / rate
        click.echo(
            f"{title:36}{mine:9.3f}{authors:11.3f}{slower[0]:7.2f}{pfllib:10.3f}{slower[1]:7.2f}"
            f"{limit:9.3f}{limit / mine:7.0%}"
        )
        if case.model == "cifar10_cnn":
            ends = [call() for call in calls.values()]
            apart = max(float(np.abs(end - ends[0]).max()) for end in ends)
            good = good and apart < FAR
            verdict = "" if apart < FAR else ": TOO FAR"
            click.echo(f"  the networks differ by at most {apart:.1e}{verdict}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
