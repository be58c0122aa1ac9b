"""Replays each session of a Parquet file in one process.

Run it with `python arrow.py sessions.parquet replayed.parquet`.
"""

import os
import sys

import context_window
import pyarrow.parquet as pq


def main(source: str, target: str) -> None:
    rows = errors = 0
    writer = None
    # Without `pre_buffer=False`, all data that was read stays in memory.
    with pq.ParquetFile(source, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=5_000):
            done = context_window.replay_batch(batch, model="gpt-4o", threads=os.cpu_count() or 1)
            writer = writer or pq.ParquetWriter(target, done.schema)
            writer.write_batch(done)
            rows += done.num_rows
            errors += done.num_rows - done["error"].null_count
    if writer is not None:
        writer.close()
    print(f"{rows} rows, {errors} of them errors")


if __name__ == "__main__":
    main(*sys.argv[1:])
