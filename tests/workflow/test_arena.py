"""The arena in the workflow: its tables are NumPy's, and its pages order the methods."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from fedcore.history import History
from fedcore.problems import storage
from fedcore.reports import tables
from site_pages import dead_links

ARENA = """
title: A small arena
citation: ""
judged: false
problems:
  little:
    dataset: little
    scale: unit_rows
    partition: {by: label}
    tags: {data: little, partition: label}
  drawn: &drawn
    label: drawn
    generator: spectrum
    params: {n_features: 9, n_samples: 60, n_clients: 3, xi: 1.5}
    tags: {data: drawn, partition: own}
  leakage: {<<: *drawn, tags: {data: leakage, partition: own}}
experiments:
  contest:
    reproduces: nothing
    problems: [little, drawn]
    metrics: [subspace_distance, captured]
    params: {n_components: 2}
    repeats: 2
    runs:
      - &ssi {algorithm: ssi, variants: {ssi: {rounds: 6, tags: {method: ssi}}}}
      - {algorithm: one_shot, variants: {one_shot: {tags: {method: one_shot}}}}
      - {algorithm: momentum_power, variants: {joined: {rounds: 2, tags: {method: joined}}}}
      - {algorithm: block_krylov, variants: {summing: {rounds: 2, tags: {method: summing}}}}
      - algorithm: analyze_gauss
        params: {epsilon: 1.0, clip: true}
        variants: {analyze_gauss_1: {tags: {method: analyze_gauss_1}}}
      - algorithm: noisy_power
        params: {epsilon: 1.0, clip: true, rounds: 2}
        variants: {noisy_power_1: {tags: {method: noisy_power_1}}}
  leakage: &attack
    reproduces: nothing
    problems: [leakage]
    metrics: [subspace_distance]
    params: {n_components: 2}
    repeats: 2
    audit: leakage
    runs: [*ssi]
  late_leakage: {<<: *attack, audit: late_leakage}
"""


@pytest.fixture(scope="module")
def arena(pristine, tmp_path_factory):
    """Copy in which a small arena has run."""
    checkout = pristine.copy(tmp_path_factory.mktemp("arena") / "checkout")
    file = checkout.root / "papers/arena/experiments.yaml"
    shipped = yaml.safe_load(file.read_text(encoding="utf-8"))
    small = yaml.safe_load(ARENA) | {key: shipped[key] for key in ("tables", "figures")}
    file.write_text(yaml.safe_dump(small, allow_unicode=True), encoding="utf-8")
    checkout.edit("tiny.yaml", "papers: [tiny]", "papers: [arena]")
    return checkout, checkout.snakemake()


def test_its_tables_agree_with_numpy(arena):
    checkout, run = arena
    assert run.status == 0, run.text
    root = checkout.root
    rows = tables.read(root / "results/tiny/tables/arena/results.tsv")
    assert len(rows) == 2 * 6 * 2  # problems, methods and repeats
    for row in rows:
        assert 0 <= row["error"] <= 1 + 1e-12
        assert row["explained"] + row["reconstruction"] == pytest.approx(1.0)
    ssi = [r for r in rows if r["method"] == "ssi" and r["problem"] == "drawn"]
    for row in ssi:  # a round costs 3 clients 9 x 2 numbers of 8 bytes, and a product each
        assert row["bytes"] == 6 * 3 * 9 * 2 * 8 and row["steps"] == row["rounds"] == 6
        # the error falls as (σ₃/σ₂)^(2 rounds) = 1.5^(-2 rounds)
        assert row["error_5"] / row["error"] == pytest.approx(1.5**2, rel=0.5)
        assert np.isnan(row["error_1"]) or row["error_1"] > row["error_5"]
    # The error is that of the kept basis against NumPy's answer from the problem's own file.
    history = History.load(root / "results/tiny/histories/arena/contest/ssi/drawn-ssi.h5")
    problem = storage.load(root / "data/clients/tiny/arena/drawn.h5")
    stacked = np.vstack([np.asarray(c) for c in problem.clients])
    exact = np.linalg.svd(stacked)[2][:2].T
    for row in ssi:
        basis = np.linalg.qr(history.final["basis"][row["repeat"]])[0]
        cosines = np.linalg.svd(exact.T @ basis, compute_uv=False)
        assert row["error"] == pytest.approx(np.sqrt(1 - cosines.min() ** 2), rel=1e-6)
        share = np.linalg.norm(stacked @ basis) ** 2 / np.linalg.norm(stacked) ** 2
        assert row["explained"] == pytest.approx(share, rel=1e-10)


def test_its_pages_show_it_and_no_link_is_dead(arena):
    site = arena[0].root / "results/tiny/report"
    assert dead_links(site) == []
    assert "A small arena" in (site / "index.html").read_text()
    data = (site / "arena/curves.js").read_text()
    groups = json.loads(data.removeprefix("window.CURVES = ").rstrip(";\n"))
    assert {run["name"] for run in groups[0]["runs"]} >= {"joined", "ssi"}
    assert {run["privacy"][:5] for run in groups[0]["runs"]} == {"none", "ε = 1"}
