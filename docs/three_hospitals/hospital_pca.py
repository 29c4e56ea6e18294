"""Federated PCA of CSV files, one hospital a file, and a plot of all patients' scores.

Once without noise, and with ``--epsilon 1`` under differential privacy.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fedcore
from fedcore.datasets import own_files
from fedcore.errors import FedcoreError, told

# What everybody knows of the columns: their possible range. Not taken from the patients, so that it
# tells nothing of them. For --epsilon on files of your own, write your columns here.
RANGES = {
    "age": (18, 92),
    "blood_pressure": (80, 180),
    "bmi": (14, 38),
    "glucose": (2.6, 8.6),
    "cholesterol": (2.2, 8.2),
    "creatinine": (30, 130),
}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("files", nargs="+", type=Path)
parser.add_argument("--epsilon", type=float, help="differential privacy; none by default")
parser.add_argument(
    "--without", action="append", default=[], metavar="COLUMN", help="leave a column out"
)
parser.add_argument("--missing", choices=["refuse", "drop"], default="refuse", help="such rows")
asked = parser.parse_args()
if asked.epsilon is not None and not asked.epsilon > 0:
    parser.error(f"--epsilon {asked.epsilon:g}: ε must be above 0, such as 1")

try:  # each is checked, and the columns of all brought into the order of the first
    tables = own_files.together(asked.files, without=asked.without, missing=asked.missing)
except FedcoreError as error:
    parser.error(told(error, command=True))
for table in tables:
    for guess in table.guesses:
        print(guess.told(command=True), file=sys.stderr)
known = list(tables[0].names)
ranged = set(RANGES) <= set(known)
names = list(RANGES) if ranged else known
clients = [table.x[:, [known.index(name) for name in names]] for table in tables]
if ranged:  # every column from -1 to 1, so that no unit weighs more than another
    lowest, highest = np.array(list(RANGES.values()), dtype=float).T
    clients = [(2 * x - lowest - highest) / (highest - lowest) for x in clients]
elif asked.epsilon is not None:
    parser.error(f"write the possible ranges of {', '.join(names)} into RANGES of this script")

if asked.epsilon is None:  # without ranges, the clients divide by standard deviations
    model = fedcore.FederatedPCA(n_components=2, scale=not ranged)
else:  # the noise hides a patient whose row may be anything within the bounds
    model = fedcore.FederatedPCA(
        n_components=2, epsilon=asked.epsilon, delta=1e-6, bounds=(-1.0, 1.0)
    )
try:
    model.fit(dict(zip(map(str, asked.files), clients, strict=True)))
except FedcoreError as error:
    parser.error(str(error))
ledger, privacy = model.ledger_, model.ledger_.privacy
about = f"{model.explained_variance_ratio_.sum():.0%} of the variance"
if privacy is not None:
    about += f", ε = {privacy.epsilon():.2g} at δ = {privacy.delta:g}"

print(f"{about}; {ledger.rounds} rounds, {ledger.bytes_up:,} bytes up, {ledger.bytes_down:,} down")
for name, *weights in zip(names, *model.components_, strict=True):
    print(f"  {name:<15}", *(f"{weight:6.2f}" for weight in weights))

figure = Figure(figsize=(6, 4.5), layout="constrained")
axes = figure.subplots()
for file, x in zip(asked.files, clients, strict=True):
    axes.plot(*model.transform(x).T, ".", markersize=2, alpha=0.5, label=file.stem)
axes.set(xlabel="first component", ylabel="second component", title=about)
axes.legend(markerscale=5)
out = "scores.png" if asked.epsilon is None else "scores-private.png"
figure.savefig(out, dpi=150)
print(f"wrote {out}")
