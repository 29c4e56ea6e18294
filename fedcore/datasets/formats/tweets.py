"""Read the tweets of Sentiment140 as sequences of GloVe word vectors."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets import archive
from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.validation import Count, CountOrZero
from fedcore.words import counted

SENTIMENT = {"0": 0, "4": 1}  # what the column of polarities says
_TOKEN = re.compile(r"[\w']+|[.,!?;]")
_MOST = 2**31  # bytes of the table, and of the vectors; they are 0.24 and 1.0 GB
_COLUMNS = 6  # polarity, tweet, date, query, user, text


def read(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    users: Count = 183,
    at_least: Count = 50,
    seed: CountOrZero = 0,
) -> Loaded:
    """Draw random users with enough tweets, and read their tweets, except neutral ones.

    A row contains the word vectors of a tweet's first words, as many as fit into `n_features`
    numbers. The vector of a word unknown to GloVe is zero, and zeros fill the rest of the row.
    Tweets are split into words and punctuation as in the benchmark LEAF. Words are in lower case,
    as in GloVe.

    Parameters
    ----------
    folder : pathlib.Path
    parts : mapping
        The key ``archive`` names the zip file of tweets, and ``members`` lists the name of the
        table in it. ``vectors`` names the zip file of word vectors, and ``words`` names the table
        in it.
    n_features : int
        Length of a row, which is the number of words per tweet times the length of a word vector.
    users : int
        Number of users to draw.
    at_least : int
        Minimum number of tweets, without neutral ones, of each drawn user.
    seed : int
        Seed of the draw.

    Returns
    -------
    Loaded
        Samples x of shape (n_samples, n_features) in single precision. The labels y are 0
        (negative) and 1 (positive). ``owners`` has the number of each row's user; users are
        numbered from 0.
    """
    path, table = folder / parts["archive"], parts["members"][0]
    with archive.opened(path) as file:
        text = file.content(file.full_name(table), _MOST).decode("latin-1")
    rows = list(_rows(text, path, table))
    counts = Counter(user for _, user, _ in rows)
    known = sorted(user for user, count in counts.items() if count >= at_least)
    if len(known) < users:
        raise DataError(
            f"{path} has {len(known)} users with at least {at_least} tweets, fewer than users = "
            f"{users}: lower 'users' or 'at_least'"
        )
    drawn = np.sort(np.random.default_rng(seed).choice(len(known), users, replace=False))
    number = {known[place]: owner for owner, place in enumerate(drawn)}
    mine = [(label, number[user], _words(said)) for label, user, said in rows if user in number]
    wanted = {word for _, _, words in mine for word in words}
    vectors = _vectors(folder / parts["vectors"], parts["words"], wanted)
    length = len(next(iter(vectors.values())))
    if n_features % length:
        raise DataError(
            f"n_features = {n_features} is no multiple of {length}, the length of a word's vector: "
            "correct n_features in the registry"
        )
    x = np.zeros((len(mine), n_features // length, length), np.float32)
    for tweet, (_, _, words) in zip(x, mine, strict=True):
        for place, word in zip(tweet, words, strict=False):
            place[:] = vectors.get(word, 0.0)
    y, owners = (np.array([row[part] for row in mine], np.int64) for part in (0, 1))
    return Loaded(x.reshape(len(mine), -1), y, owners=owners)


def _rows(text: str, path: Path, table: str) -> Any:
    """Yield the sentiment, user and text of each tweet that is not neutral."""
    for line, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if len(row) != _COLUMNS:
            found = counted(len(row), "column")
            says = f"{found} where {_COLUMNS} should be"
            raise DataError(f"{path}, {table}, line {line}: {says}")
        if row[0] in SENTIMENT:
            yield SENTIMENT[row[0]], row[4], row[5]


def _words(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _vectors(path: Path, table: str, wanted: set[str]) -> dict[str, np.ndarray]:
    """Return the vectors of the words `wanted`, from a table with a word and vector per line."""
    found: dict[str, np.ndarray] = {}
    with archive.opened(path) as file, file.stream(file.full_name(table), _MOST) as lines:
        for number, line in enumerate(lines, start=1):
            word, _, rest = line.partition(b" ")
            if (name := word.decode("utf-8", "replace")) in wanted:
                try:
                    found[name] = np.array(rest.split(), np.float32)
                except ValueError as error:
                    raise DataError(f"{path}, {table}, line {number}: {error}") from error
    if len({len(vector) for vector in found.values()}) != 1:
        raise DataError(f"{path}, {table}: the tweets' words must have vectors of one length")
    return found
