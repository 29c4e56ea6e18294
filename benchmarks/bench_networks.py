"""Time of a round with networks, against a plain loop in PyTorch's own modules.

A client has 500 images and the network for CIFAR-10. Ours is the library (`fedcore.runs.execute`)
with one round; plain is the loop that the authors of FedRep wrote: client by client, a module, an
optimiser, and for every batch a pass through all layers, of which those that do not move only lose
their gradients. Beside them stands the time in which the machine's best rate of products would do
the arithmetic. On a core it is CPU time, and one client; with ``--device cuda`` it is wall time,
and ten clients that advance together, all three on that device. The exit status is 1 when the two
end with other networks. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import os
import sys
from collections.abc import Callable

import click
import numpy as np
from timing import seconds

try:
    import torch
    from torch import nn
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

MODEL, SEED, BATCH = "cifar10_cnn", 3, 10
FAR = 1e-3  # of single precision after 50 to 550 steps
# Multiplications and additions of a forward pass, per image: two convolutions, three layers.
FORWARD = 2 * (28**2 * 64 * 75 + 10**2 * 64 * 1600 + 1600 * 120 + 120 * 64 + 64 * 10)


def module(w: np.ndarray, where: torch.device) -> nn.Sequential:
    """The network of PyTorch's modules at the parameters `w`."""
    net = nn.Sequential(
        nn.Conv2d(3, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 64, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 120), nn.ReLU(), nn.Linear(120, 64),
        nn.ReLU(), nn.Linear(64, 10),
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


def plain(
    data: Clients, head_epochs: int, all_at_once: bool, where: torch.device
) -> Callable[[], np.ndarray]:
    """Return a round of the plain loop: epochs on the head, then one on the body or on all.

    It gives the mean of the clients' bodies, and of all parameters where all move at once.
    """
    root = root_of(SEED)
    samples = [torch.from_numpy(own).view(-1, 3, 32, 32).to(where) for own in data]
    labels = [torch.from_numpy(own).long().to(where) for own in data.labels or []]

    def run() -> np.ndarray:
        found = np.mean([one(i) for i in range(len(data))], axis=0)
        return found if all_at_once else found[: models.sizes(MODEL, 3072).body]

    def one(i: int) -> np.ndarray:
        first = int(np.random.default_rng(child(root, SERVER)).integers(2**63))
        rng = np.random.default_rng(child(root, CLIENT, i))
        net, x, y = module(start(first), where), samples[i], labels[i]
        head = list(net[-1].parameters())
        body = [p for p in net.parameters() if not any(p is q for q in head)]
        phases = [
            (head, body, head_epochs),
            (body + head * all_at_once, [] if all_at_once else head, 1),
        ]
        for moving, still, epochs in phases:
            for p in moving + still:
                p.requires_grad_(any(p is q for q in moving))
            optimiser = torch.optim.SGD(moving, lr=0.01, momentum=0.5)
            for _ in range(epochs):
                order = torch.from_numpy(rng.permutation(len(y))).to(where)
                for rows in order.split(BATCH):
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
                    optimiser.step()
        return vector(net)

    return run


def start(seed: int) -> np.ndarray:
    """Return the first network."""
    return models.start(MODEL, 3072, seed, np.dtype(np.float32))


def ours(data: Clients, name: str, **more: int) -> Callable[[], np.ndarray]:
    """Return a round of the library, from which the client's network comes."""
    algorithm, problem = algorithms.get(name), Problem("one", data)
    settings = algorithm.params({"model": MODEL, "rounds": 1, "participation": 1.0, **more})

    def run() -> np.ndarray:
        _, output = execute(algorithm, problem, settings, SEED)
        return np.asarray(output["body" if name == "fedrep" else "parameters"])

    return run


@click.command(help=__doc__.partition("\n\n")[0])
@click.option("--samples", default=500, show_default=True, help="Images of the client.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--device", default="cpu", show_default=True, help="cpu, together, cuda, mps, …")
@click.option("--clients", type=int, help="[default: 1 on a core, else 10]")
def main(samples: int, repeats: int, device: str, clients: int | None) -> None:
    os.environ[devices.VARIABLE] = device
    where, together = devices.chosen()
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
    click.echo(f"{what:32}{'ours s':>9}{'plain s':>9}{'ratio':>7}{'limit s':>9}{'share':>7}")
    good = True
    cases = (
        ("fedrep, 10 head epochs and 1", "fedrep", {"head_epochs": 10}, 10, False, 1 + 3),
        ("fedavg, 1 epoch", "fedavg", {}, 0, True, 3),
    )
    for title, name, more, head_epochs, at_once, passes in cases:
        mine, theirs = ours(data, name, **more), plain(data, head_epochs, at_once, where)
        apart = float(np.abs(mine() - theirs()).max())
        good = good and apart < FAR
        a, b = (seconds(run, repeats, clock) for run in (mine, theirs))
        limit = passes * FORWARD * samples * n / rate
        click.echo(f"{title:32}{a:9.3f}{b:9.3f}{b / a:7.2f}{limit:9.3f}{limit / a:7.0%}")
        click.echo(
            f"  the networks differ by at most {apart:.1e}" + ("" if apart < FAR else ": TOO FAR")
        )
    sys.exit(not good)


if __name__ == "__main__":
    main()
