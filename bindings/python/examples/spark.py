"""Replays each session of a Parquet file with Spark, in two processes.

Run it with `python spark.py sessions.parquet replayed`.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

FIGURES = "prompts long, tokens long, reuse long, drops long, cost long, overflow long"
SCHEMA = f"id long, fingerprint string, {FIGURES}, error string"


def replayed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import context_window

    for batch in batches:
        yield context_window.replay_batch(batch, model="gpt-4o")


def session(master: str) -> SparkSession:
    # Scripts of the installed package start the executors and work in its folder, so they get a folder of
    # their own.
    home = os.environ["SPARK_HOME"] = tempfile.mkdtemp()
    for name in ("bin", "jars"):
        os.symlink(os.path.join(os.path.dirname(pyspark.__file__), name), os.path.join(home, name))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = os.environ["SPARK_LOCAL_HOSTNAME"] = "127.0.0.1"
    local: dict[str, Any] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    local["spark.ui.enabled"] = False
    return SparkSession.builder.master(master).config(map=local).getOrCreate()


def main(source: str, target: str, master: str = "local-cluster[2,1,1024]") -> None:
    spark = session(master)
    spark.read.parquet(source).mapInArrow(replayed, SCHEMA).write.mode("overwrite").parquet(target)
    ((rows, errors),) = spark.read.parquet(target).select(f.count("*"), f.count("error")).collect()
    print(f"{rows} rows, {errors} of them errors")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
