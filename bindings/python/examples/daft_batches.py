"""Replays each session of a Parquet file with Daft.

Run it with `python daft_batches.py sessions.parquet replayed`.
"""

import os
import sys

os.environ["DAFT_ANALYTICS_ENABLED"] = "0"

import context_window
import daft
import pyarrow as pa
from daft import DataType, Series, col

FIGURES = ("prompts", "tokens", "reuse", "drops", "cost", "overflow")
RESULT = {"fingerprint": DataType.string(), **dict.fromkeys(FIGURES, DataType.int64()), "error": DataType.string()}


@daft.func.batch(return_dtype=DataType.struct(RESULT), unnest=True, batch_size=5_000)
def replayed(session: Series, documents: Series) -> pa.Array:
    columns = {"session": session.to_arrow(), "documents": documents.to_arrow()}
    return context_window.replay_batch(pa.record_batch(columns), model="gpt-4o").to_struct_array()


def main(source: str, target: str) -> None:
    sessions = daft.read_parquet(source)
    sessions.select(col("id"), replayed(col("session"), col("documents"))).write_parquet(target, write_mode="overwrite")
    done = daft.read_parquet(target).agg(col("id").count().alias("rows"), col("error").count().alias("errors"))
    (figures,) = done.to_pylist()
    print(f"{figures['rows']} rows, {figures['errors']} of them errors")


if __name__ == "__main__":
    main(*sys.argv[1:])
