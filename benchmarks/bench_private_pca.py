"""CPU time of the private PCA methods, beside what each must do at the least.

One client of n × d spiked rows. A step of the adaptive power method (`filtered`) beside the product
``Sᵀ(S x)`` without privacy, two passes over the data, and one read of the data; the whole of
Analyze Gauss beside the Gram matrix that it perturbs; a row of private Oja beside the two NumPy
calls that a step needs. The exit status is 1 when the step without noise is not the product. See
README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import sys

import click
import numpy as np
from timing import seconds

from fedcore import algorithms
from fedcore.api import execute
from fedcore.federation.federation import Federation
from fedcore.generators import generate
from fedcore.linalg import gram_matrix
from fedcore.parts.filtering import Noise, filtered_product
from fedcore.problems.problem import Problem


@click.command()
@click.option("--samples", default=100_000, show_default=True)
@click.option("--features", default=100, show_default=True)
def main(samples: int, features: int) -> None:
    """Print the times, and their ratios."""
    rng = np.random.default_rng(0)
    (data,) = generate("spiked_rows", rng, {"n_samples": samples, "n_features": features})
    x = np.linalg.qr(rng.standard_normal((features, 1)))[0]
    federation = Federation([data], check=False)
    federation.protect(delta=1e-6, neighbours="add_or_remove_one")
    federation.broadcast(x)
    # A search that spares all rows, and next to no noise.
    step = filtered_product(Noise(search=1e3, multiplier=1e-12, query_scale=2.0), 1e-9, 2.0)
    agree = np.allclose(federation.gather(step)[0], data.T @ (data @ x), rtol=1e-9)

    problem, chosen = Problem("rows", [data]), algorithms.get("analyze_gauss")
    settings = chosen.params({"n_components": 1})

    def analyze_gauss() -> None:
        problem.clients.kept_of[0].__dict__.clear()  # the Gram matrix that a former run has kept
        execute(chosen, problem, settings, 0, ())

    few = Problem("rows", [data[:10_000]])
    oja = algorithms.get("private_oja")
    oja_settings = oja.params({"n_components": 1})
    row = data[0]
    times = {
        "read": seconds(lambda: np.vdot(data, data)),
        "product": seconds(lambda: data.T @ (data @ x)),
        "filtered": seconds(lambda: federation.gather(step)),
        "Gram": seconds(lambda: gram_matrix([data])),
        "Analyze Gauss": seconds(analyze_gauss),
        "two calls": seconds(lambda: [row * (row @ x[:, 0]) for _ in range(10_000)]) / 10_000,
        "Oja, a row": seconds(lambda: execute(oja, few, oja_settings, 0, ())) / len(few.clients[0]),
    }
    for name, value in times.items():
        print(f"{name:16s} {value:.3g} s")
    for one, other in (
        ("filtered", "product"), ("filtered", "read"), ("Analyze Gauss", "Gram"),
        ("Oja, a row", "two calls"),
    ):  # fmt: skip
        print(f"{one} / {other}: {times[one] / times[other]:.2f}")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
