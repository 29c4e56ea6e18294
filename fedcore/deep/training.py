"""The class `Learner`, with which methods train and evaluate networks at the clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedcore.deep import device, models
from fedcore.deep.batches import Batch, augmented, of_several
from fedcore.deep.evaluation import Adapted, Networks, Vectors, in_pieces
from fedcore.deep.networks import Network
from fedcore.deep.settings import Params
from fedcore.errors import InputError
from fedcore.federation import lockstep
from fedcore.federation.execution import AnyStep, scheduled_by
from fedcore.problems.clients import Clients, Labelled
from fedcore.words import client, counted

Adapt = Callable[[Labelled, np.ndarray], np.ndarray]
Place = tuple[tuple[int, ...], tuple[int, ...], np.dtype]

# The current run's samples on the accelerator. A learner does not contain them, because it is sent
# to clients in other processes.
_THERE: dict[Place, tuple[Labelled, Batch]] = {}


class Learner:
    """The network of a run and the ways to train it; a learner stores no parameters.

    PyTorch uses as many threads as this process allows. The command line and the workflow allow one
    thread, so that results do not depend on the number of cores. On an accelerator (see
    `fedcore.deep.device`), the samples stay in the accelerator's memory, and the clients of a round
    train together.

    Parameters
    ----------
    params : Params
    clients : Clients
        Clients whose data are checked once against the network and the batches.

    Attributes
    ----------
    whole, body, head : Network
        The whole network, its body and its head. The vector of parameters of `whole` is the body's
        vector followed by the head's vector.
    sizes : models.Sizes
        Numbers of parameters of the whole network, its body and its head.

    Raises
    ------
    InputError
        If a client has fewer samples than a batch, or a label that is not a class of the network.
        If samples do not fit the network, `augment` or `ground`. If samples are float64 and the
        device is mps.
    """

    def __init__(self, params: Params, clients: Clients) -> None:
        model = models.MODELS[params.model]
        shape = models.sample_shape(params.model, clients.n_features)
        self._params, self._n_features = params, clients.n_features
        _THERE.clear()
        self._dtype = np.result_type(*clients.dtypes)
        if device.read_device().where.type == "mps" and self._dtype == np.float64:
            raise InputError(
                "mps computes in single precision, and these samples are float64: give float32 "
                "samples"
            )
        self.sizes = models.sizes(params.model, clients.n_features)
        if params.augment and len(shape) != 3:
            raise InputError(
                f"augment moves and mirrors images, but {params.model} takes no images: leave out "
                "augment"
            )
        if params.ground is not None and not params.augment:
            raise InputError("ground fills moved images: give augment, or leave out ground")
        if params.ground is not None and len(params.ground) != shape[0]:
            raise InputError(
                f"ground has {counted(len(params.ground), 'number')}, but the images have "
                f"{counted(shape[0], 'channel')}: give one number for each channel"
            )
        decay = params.weight_decay
        self.body = Network(model.body, shape, decay)
        self.head = Network(model.head, self.body.output, decay)
        self.whole = Network(model.body + model.head, shape, decay)
        for i, (samples, _) in enumerate(clients.shapes):
            if params.batch is not None and samples < params.batch:
                raise InputError(
                    f"{client(i)} has {counted(samples, 'sample')}, fewer than batch = "
                    f"{params.batch}: take a smaller batch or leave the client out"
                )
            require_classes(clients.labelled(i).y, model.classes, client(i), params.model)

    def start(self, seed: int) -> np.ndarray:
        """Return the initial parameters, which are equal at server and clients for equal seeds."""
        return models.start(self._params.model, self._n_features, seed, self._dtype)

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters of body and head from a vector of all parameters."""
        return w[: self.sizes.body], w[self.sizes.body :]

    def step(self, step: AnyStep) -> AnyStep:
        """Mark a function that trains at a client, so that an accelerator trains clients together.

        The function `step` is written for one client. At each of its calls of `descend`,
        `fedcore.federation.lockstep` makes all clients of the round wait for each other.
        """
        return scheduled_by(lockstep.run_all, step) if device.read_device().together else step

    def samples(self, data: Labelled) -> Batch:
        """Return all samples of a client as one batch, on the device where the network computes."""
        place, where = (_place(data.X), _place(data.y), self._dtype), device.read_device().where
        if place in _THERE:
            return _THERE[place][1]
        with device.room(where, "the samples of all clients, which stay there", "fewer samples"):
            x = self.body.inputs(data.X.astype(self._dtype, copy=False)).to(where)
            batch = Batch(x, torch.tensor(np.ascontiguousarray(data.y)).long().to(where))
        if where.type != "cpu":
            _THERE[place] = data, batch  # with the arrays, so that no others come there
        return batch

    def head_batches(
        self, body: np.ndarray, data: Labelled, rng: np.random.Generator, epochs: int
    ) -> list[Batch]:
        """Return the body's outputs for the batches of `epochs` epochs, to train the head on them.

        While only the head is trained, the body's output for a sample stays the same. One pass
        through the body therefore serves all epochs. The exceptions are augmented images, and a
        body whose output for a sample depends on other samples of the batch.
        """
        samples = self.samples(data)
        if not self._params.augment and self.body.block == 1:
            (features,) = self._represent(body, [samples.x])
            return self.batches(Batch(features, samples.y), rng, epochs)
        batches = self.batches(samples, rng, epochs)
        features = self._represent(body, [batch.x for batch in batches])
        return [batch._replace(x=x) for batch, x in zip(batches, features, strict=True)]

    def _represent(self, body: np.ndarray, inputs: list[Tensor]) -> list[Tensor]:
        """Return the body's outputs, computed in one thread for all clients that train together.

        On an accelerator, PyTorch keeps tens of megabytes of work space for every thread. The
        threads of a thousand clients would fill the memory.
        """
        found: list[Tensor] = lockstep.meet(
            self._represent_all, self._represent_all, (body, inputs)
        )
        return found

    def _represent_all(self, asked: list[tuple[np.ndarray, list[Tensor]]]) -> list[list[Tensor]]:
        return [[in_pieces(self.body, body, x) for x in inputs] for body, inputs in asked]

    def batches(self, samples: Batch, rng: np.random.Generator, epochs: int) -> list[Batch]:
        """Return the batches of `epochs` epochs; each epoch has a new random order of samples."""
        found, step = [], self._params.batch or len(samples.y)
        for _ in range(epochs):
            order = torch.from_numpy(rng.permutation(len(samples.y))).to(samples.x.device)
            x = samples.x[order]
            x = augmented(x, rng, self._params.ground) if self._params.augment else x
            parts = x.split(step), samples.y[order].split(step)
            seeds = rng.integers(2**63, size=len(parts[0])).tolist() if self.whole.random else []
            found += [
                Batch(x, y, seeds[i] if seeds else None)
                for i, (x, y) in enumerate(zip(*parts, strict=True))
            ]
        return found

    def descend(
        self,
        w: np.ndarray,
        gradient: Gradient,
        batches: Sequence[Batch],
        *fixed: np.ndarray,
        pull: float = 0.0,
    ) -> np.ndarray:
        """Make one step of gradient descent with momentum for each batch; return the last `w`.

        Each step is ``u ← momentum · u + gradient(w, batch, *fixed)`` and ``w ← w − rate · u``, as
        in PyTorch's SGD. The first step starts from `w` and u = 0. With a `pull`, the second
        formula is ``w ← w − rate · (u + pull · (w − a))``, where a is the first vector in `fixed`.
        All local training in this package uses this loop.

        Clients that train together share calls of `gradient` if they pass the same function
        `gradient` and the same `pull`. The function `gradient` then gets and returns arrays with a
        leading axis of clients. Pass vectors that differ between clients as arguments `fixed`. If
        `gradient` is a closure over such vectors, the clients are trained one by one.
        """
        one, how = Descent(w, batches, fixed), How(self._params.rate, self._params.momentum, pull)
        together = gradient, pull  # what clients that descend together have in common
        return lockstep.meet(together, lambda several: self._descend(gradient, several, how), one)

    def _descend(
        self, gradient: Gradient, several: Sequence[Descent], how: How
    ) -> list[np.ndarray]:
        where = device.read_device().where
        if len(several) == 1:
            with device.room(where, "the training of one client"):
                return [descend_one(gradient, several[0], how, where)]
        what = f"{len(several)} clients that advance together"
        with device.room(where, what, "fewer (a smaller participation) or a smaller batch"):
            return descend_several(gradient, several, how, where)

    def proximal(self, strength: float) -> Gradient:
        """Return a function that computes the gradient of ``f(w) + strength/2 ‖w − anchor‖²``.

        Here f is the loss on a batch, and the anchor is passed to `descend` as a `fixed` vector.
        """

        def gradient(w: Tensor, batch: Batch, anchor: Tensor) -> Tensor:
            found = self.whole.gradient(w, batch)  # a new one: in place, as vectors are megabytes
            return found.add_(w, alpha=strength).sub_(anchor, alpha=strength)

        return gradient

    def tensor(self, w: np.ndarray) -> Tensor:
        """Return a copy of `w` as a tensor on the device where the network computes."""
        return torch.tensor(w, device=device.read_device().where)

    @staticmethod
    def join(*parts: Tensor) -> Tensor:
        """Return the vectors joined into one, in their order."""
        return torch.cat(parts, dim=-1)

    def networks(self, held: np.ndarray, bodies: Vectors, heads: Vectors) -> Networks:
        """Return the clients' networks for the recorder; `held` has the server's parameters."""
        return Networks(self.body, self.head, held, bodies, heads)

    def shared(self, w: np.ndarray) -> Networks:
        """Return the clients' networks for a method whose clients use the server's network."""
        return self.networks(w, *self.split(w))

    def personal(self, held: np.ndarray, models: Sequence[np.ndarray]) -> Networks:
        """Return the clients' networks of a method in which each client has its own model."""
        bodies, heads = zip(*map(self.split, models), strict=True)
        return self.networks(held, bodies, heads)

    def adapted(self, clients: Clients, w: np.ndarray, adapt: Adapt) -> Adapted:
        """Return the clients' networks ``adapt(data, w)``, computed when scores are needed."""

        def make() -> Networks:
            everyone = range(len(clients))
            return self.personal(w, [adapt(clients.labelled(i), w) for i in everyone])

        return Adapted(w, make)


def _place(array: np.ndarray) -> tuple[int, ...]:
    """Return an array's address, shape and strides, which tell arrays apart that share memory."""
    return array.ctypes.data, *array.shape, *array.strides


def require_classes(y: np.ndarray, classes: int, who: str, model: str) -> None:
    """Raise an error if a label is not a class of the model.

    Raises
    ------
    InputError
        If a label is wrong. The error message begins with `who`.
    """
    wrong = (y < 0) | (y >= classes) | (y != np.floor(y))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{who} has the label {y[row]:g} at row {row}: {model} takes the classes 0 to "
            f"{classes - 1}"
        )


Gradient = Callable[..., Tensor]  # ``(w, batch, *fixed) -> gradient``


class Descent(NamedTuple):
    """A client's initial parameters, a batch for each step, and fixed vectors for the gradient."""

    start: np.ndarray
    batches: Sequence[Batch]
    fixed: tuple[np.ndarray, ...]


class How(NamedTuple):
    """Learning rate, momentum and pull of a descent; see `Learner.descend`."""

    rate: float
    momentum: float
    pull: float

    def move(self, w: Tensor, step: Tensor, gradient: Tensor, fixed: Sequence[Tensor]) -> None:
        """Make one step of descent; overwrite the parameters `w` and the momentum vector `step`."""
        step.mul_(self.momentum).add_(gradient)
        if self.pull:
            w.lerp_(fixed[0], self.rate * self.pull)
        w.sub_(step, alpha=self.rate)


def descend_one(gradient: Gradient, client: Descent, how: How, device: torch.device) -> np.ndarray:
    """Return the parameters at which the descent of one client ends."""
    end = torch.tensor(client.start, device=device)
    fixed = [torch.tensor(vector, device=device) for vector in client.fixed]
    step = torch.zeros_like(end)
    for batch in client.batches:
        how.move(end, step, gradient(end, batch, *fixed), fixed)
    found: np.ndarray = end.cpu().numpy()
    return found


def descend_several(
    gradient: Gradient,
    clients: Sequence[Descent],
    how: How,
    device: torch.device,
) -> list[np.ndarray]:
    """Return the parameters at which each client's descent ends.

    In each step, one call of `gradient` serves all clients whose batches have equal size. A client
    without further batches keeps its parameters.
    """

    def stacked(vectors: Sequence[np.ndarray]) -> Tensor:
        return torch.tensor(np.stack(vectors), device=device)

    end = stacked([client.start for client in clients])
    fixed = [stacked(vectors) for vectors in zip(*(c.fixed for c in clients), strict=True)]
    step = torch.zeros_like(end)
    there: dict[tuple[int, ...], Tensor] = {}  # row numbers; each copy to the device takes time
    for t in range(max(len(one.batches) for one in clients)):
        for members in _alike(clients, t):
            batch = of_several([clients[i].batches[t] for i in members])
            if len(members) == len(clients):
                how.move(end, step, gradient(end, batch, *fixed), fixed)
                continue
            if members not in there:
                there[members] = torch.tensor(members, device=device)
            rows = there[members]
            own, moved, theirs = end[rows], step[rows], [vectors[rows] for vectors in fixed]
            how.move(own, moved, gradient(own, batch, *theirs), theirs)
            end[rows], step[rows] = own, moved
    return [w.copy() for w in end.cpu().numpy()]


def _alike(clients: Sequence[Descent], t: int) -> list[tuple[int, ...]]:
    """Return the clients that make step t, in groups whose batches have equal size."""
    sizes: dict[int, list[int]] = {}
    for i, one in enumerate(clients):
        if t < len(one.batches):
            sizes.setdefault(len(one.batches[t].y), []).append(i)
    return [tuple(members) for members in sizes.values()]
