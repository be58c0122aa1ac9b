"""Writes a Parquet file of many sessions, made from the real sessions in the folder that CONTEXT_WINDOW_DATA
names.

    python tests/make_sessions.py sessions.parquet --rows 1000000 --damaged 0.1

Columns: `id` (int64), `session` (JSON, about 3 kB), `documents` (a JSON list, for a quarter of the rows).
Equal arguments give equal rows. Rows are written one group at a time, so memory does not grow with their
number.
"""

from __future__ import annotations

import argparse
import bisect
import gzip
import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SESSIONS = ("conv_small", "conv_glaive", "conv_tau2")
DOCUMENTS = "rag_musique"
ROWS_OF_A_GROUP = 5_000
SCHEMA = pa.schema([("id", pa.int64()), ("session", pa.string()), ("documents", pa.string())])

Row = tuple[int, "str | None", "str | None"]


class Source(NamedTuple):
    """A real session: its messages as JSON strings, and its size in bytes after each of its messages."""

    id: str
    tools: str
    messages: list[str]
    sizes: list[int]


def data() -> Path | None:
    """Returns the folder of the real sessions, or None if it is missing or incomplete."""
    named = os.environ.get("CONTEXT_WINDOW_DATA")
    folder = Path(named) if named else None
    return (
        folder
        if folder is not None and all((folder / f"{name}.jsonl.gz").is_file() for name in (*SESSIONS, DOCUMENTS))
        else None
    )


def _lines(name: str) -> Iterator[dict[str, Any]]:
    folder = data()
    if folder is None:
        names = ", ".join(f"{one}.jsonl.gz" for one in (*SESSIONS, DOCUMENTS))
        raise SystemExit(f"CONTEXT_WINDOW_DATA: expected a folder with {names}")
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sources() -> list[Source]:
    found = []
    for name in SESSIONS:
        for session in _lines(name):
            messages = [_text(message) for message in session["messages"]]
            tools = f',"tools":{_text(session["tools"])}' if session.get("tools") else ""
            sizes = itertools.accumulate((len(message.encode()) + 1 for message in messages), initial=len(tools) + 100)
            found.append(Source(session["id"], tools, messages, list(sizes)[1:]))
    return sorted(found, key=lambda source: (source.sizes[-1], source.id))


def _damaged(kind: int, session: str) -> tuple[str | None, str | None]:
    """Returns a session that cannot be planned, and its documents."""
    return [
        (session[: len(session) // 2], None),
        (None, None),
        ("[1, 2, 3]", None),
        ('{"messages": 5}', None),
        ('{"messages": [{"role": "user", "content": 7}]}', None),
        ('{"messages": [{"role": "nobody", "content": "?"}]}', None),
        (session, '[{"id": "d", "text":'),
    ][kind % 7]


def rows(count: int, damaged: float = 0.0, seed: int = 0) -> Iterator[Row]:
    """Yields `count` rows. `int(count * damaged)` of them, evenly spread, cannot be planned."""
    sources, chance = _sources(), random.Random(seed)
    lengths = [source.sizes[-1] for source in sources]
    passages = [passage for one in _lines(DOCUMENTS) for passage in one["passages"]]
    for at in range(count):
        wanted = min(500 + chance.expovariate(1 / 1_900), lengths[-1])
        source = sources[-1]
        for _ in range(8):
            source = sources[chance.randrange(bisect.bisect_left(lengths, wanted), len(sources))]
            if source.sizes[0] <= wanted:
                break
        most = bisect.bisect_left(source.sizes, wanted) + 1
        budget = chance.choice((400, 800, 2_000, 8_000))
        head = f'{{"id":"{source.id}-{at}","model":"gpt-4o","limits":{{"prompt_budget":{budget}}}{source.tools}'
        session: str | None = f'{head},"messages":[{",".join(source.messages[:most])}]}}'
        documents: str | None = None
        if at % 4 == 0:
            first = chance.randrange(len(passages))
            documents = _text([{"id": f"d{n}", **_said(one)} for n, one in enumerate(passages[first : first + 3])])
        before = int(at * damaged)
        if int((at + 1) * damaged) > before:
            session, documents = _damaged(before, session or "")
        yield at, session, documents


def _said(passage: dict[str, Any]) -> dict[str, Any]:
    return {"text": passage["text"], "score": passage["score"]}


def make(path: str | Path, count: int, damaged: float = 0.0, seed: int = 0) -> int:
    """Writes the file. Returns the number of rows that cannot be planned."""
    made = rows(count, damaged, seed)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=False) as writer:
        while group := list(itertools.islice(made, ROWS_OF_A_GROUP)):
            columns = [pa.array(column, field.type) for column, field in zip(zip(*group), SCHEMA)]
            writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
    return int(count * damaged)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--damaged", type=float, default=0.0, help="this part of the rows cannot be planned")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{given.rows} rows, {make(given.path, given.rows, given.damaged, given.seed)} of them damaged")
