"""What federated peers compute, for `bench_peers.py`, which starts it with a Python of each peer.

It takes a peer, a folder with the pooled `rows.npy`, and what is asked as JSON. A line of standard
input is a turn, with a seed. It answers with the CPU seconds of the turn, those of the processes
that it has started included, and leaves `basis.npy` in the folder.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[int], np.ndarray]  # of a seed, to a basis as columns


def below(root: int) -> float:
    """Return the CPU seconds of all processes that a process has started, and of theirs."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return sum(ticks[process] for process in found[1:]) / os.sysconf("SC_CLK_TCK")


def answer(call: Call, folder: Path, out: Any) -> None:
    """Do a turn for each line of standard input."""
    for line in sys.stdin:
        started, cpu = below(os.getpid()), time.process_time()
        basis = call(int(line))
        cpu, started = time.process_time() - cpu, below(os.getpid()) - started
        np.save(folder / "basis.npy", basis)
        print(cpu + started, file=out, flush=True)


def flower(rows: np.ndarray, asked: dict[str, Any], answered: Callable[[Call], None]) -> None:
    """SSI as an app: clients multiply, FedAvg takes the mean, and the server orthonormalises."""
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    file, count = str(Path(asked["folder"], "rows.npy")), asked["clients"]
    client, server = ClientApp(), ServerApp()

    @client.train()
    def train(message: Message, context: Context) -> Message:
        parts = np.array_split(np.load(file, mmap_mode="r"), count)
        S = parts[int(context.node_config["partition-id"])]
        Z = message.content["arrays"].to_numpy_ndarrays()[0]
        content = {
            "arrays": ArrayRecord([S.T @ (S @ Z) / len(S)]),
            "metrics": MetricRecord({"num-examples": len(S)}),
        }
        return Message(content=RecordDict(content), reply_to=message)

    class Power(FedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            arrays, metrics = super().aggregate_train(server_round, replies)
            return ArrayRecord([np.linalg.qr(arrays.to_numpy_ndarrays()[0])[0]]), metrics

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        def call(seed: int) -> np.ndarray:
            begin = ArrayRecord([np.load(Path(asked["folder"], "start.npy"))])
            strategy = Power(fraction_evaluate=0.0, min_available_nodes=count)
            ended = strategy.start(grid=grid, initial_arrays=begin, num_rounds=asked["rounds"])
            return ended.arrays.to_numpy_ndarrays()[0]

        answered(call)

    used = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=count, backend_config=used)


def fl4health(rows: np.ndarray, asked: dict[str, Any], answered: Callable[[Call], None]) -> None:
    """FL4Health's modules of clients and its server's merge, without a transport between them."""
    import torch
    from fl4health.model_bases.pca import PcaModule
    from fl4health.strategies.fedpca import FedPCA

    parts = [torch.from_numpy(part) for part in np.array_split(rows, asked["clients"])]
    parts = [part.float() for part in parts]  # as PcaModule would in each turn
    rank = asked["rank"]
    merge = getattr(FedPCA(), f"merge_subspaces_{asked['merge']}")

    def call(seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        module = PcaModule(low_rank=rank is not None, rank_estimation=rank or 6)
        found = [module(part, center_data=True) for part in parts]
        vectors, values = zip(*((V.numpy(), s.numpy()) for V, s in found), strict=True)
        return merge(list(vectors), list(values))[0][:, : asked["r"]]

    answered(call)


def diffprivlib(rows: np.ndarray, asked: dict[str, Any], answered: Callable[[Call], None]) -> None:
    """diffprivlib's PCA of rows of norm 1 at most, without a mean; it ends at its limit of CPU."""
    from diffprivlib.models import PCA

    limit = asked["limit"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # the first ends it

    def call(seed: int) -> np.ndarray:
        model = PCA(
            asked["r"], epsilon=asked["epsilon"], data_norm=1.0, centered=True, random_state=seed
        )
        return model.fit(rows).components_.T

    answered(call)


def main() -> None:
    """Take turns as one of the peers."""
    name, text = sys.argv[1:]
    asked = json.loads(text)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # peers write on standard output, too
    folder = Path(asked["folder"])
    peer = {"flower": flower, "fl4health": fl4health, "diffprivlib": diffprivlib}[name]
    try:
        peer(np.load(folder / "rows.npy"), asked, lambda call: answer(call, folder, out))
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # Flower's other threads would go on


if __name__ == "__main__":
    main()
