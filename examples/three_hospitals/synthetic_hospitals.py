"""Writes three CSV files of synthetic patients, north.csv, south.csv and west.csv, and ranges.csv.

Nobody's data: every value is drawn from the seed below. Two hidden traits, age and metabolism, move
the six measurements together, and each hospital has patients of its own kind.
"""

from pathlib import Path

import numpy as np

SEED = 17
NAMES = ["age", "blood_pressure", "bmi", "glucose", "cholesterol", "creatinine"]
TYPICAL = np.array([55.0, 130.0, 26.0, 5.6, 5.2, 80.0])
PER_TRAIT = np.array(
    [
        [14.0, 12.0, 0.3, 0.3, 0.4, 9.0],  # age
        [0.0, 5.0, 4.0, 1.1, 0.5, 0.0],  # metabolism
    ]
)
REST = np.array([3.0, 7.0, 1.5, 0.5, 0.5, 8.0])  # standard deviation of what the traits leave
LOWEST = np.array([18.0, 80.0, 15.0, 3.0, 2.5, 30.0])
HOSPITALS = {  # patients, and the means of the two traits
    "north": (4000, [0.4, -0.3]),
    "south": (2500, [-0.5, 0.0]),
    "west": (1500, [-0.2, 0.8]),
}

# What everybody knows of the measurements. It is not taken from the patients: it tells nothing of
# them.
RANGES = {
    "age": (18, 92),
    "blood_pressure": (80, 180),
    "bmi": (14, 38),
    "glucose": (2.6, 8.6),
    "cholesterol": (2.2, 8.2),
    "creatinine": (30, 130),
}

rng = np.random.default_rng(SEED)
for hospital, (patients, means) in HOSPITALS.items():
    traits = means + rng.standard_normal((patients, 2))
    values = TYPICAL + traits @ PER_TRAIT + REST * rng.standard_normal((patients, len(NAMES)))
    values = np.maximum(values, LOWEST)
    np.savetxt(
        f"{hospital}.csv", values, "%.1f", ",", header=",".join(NAMES), comments="", newline="\n"
    )
    print(f"{hospital}.csv: {patients} synthetic patients")
lines = [f"{name},{low},{high}" for name, (low, high) in RANGES.items()]
Path("ranges.csv").write_text("\n".join(["column,low,high", *lines, ""]), encoding="utf-8")
print("ranges.csv: what each measurement can be")
