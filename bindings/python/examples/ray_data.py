"""Plans each session of a Parquet file with Ray Data, in two processes.

Run it with `python ray_data.py sessions.parquet out`.
"""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import pyarrow as pa
import pyarrow.dataset
import ray


def planned(table: pa.Table) -> pa.Table:
    import context_window

    # Ray Data passes tables, and first an empty one to determine the columns.
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return pa.Table.from_batches([context_window.plan_batch(batch, model="gpt-4o", plans=False) for batch in batches])


def main(source: str, target: str) -> None:
    ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, num_cpus=2, configure_logging=False)
    sessions = ray.data.read_parquet(source)
    sessions.map_batches(planned, batch_format="pyarrow", batch_size=5_000).write_parquet(os.path.abspath(target))
    done = pyarrow.dataset.dataset(target).to_table(columns=["error"])
    print(f"{done.num_rows} rows, {done.num_rows - done['error'].null_count} of them errors")
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
