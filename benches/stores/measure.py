#!/usr/bin/env python3
"""Measure what two Python libraries store for one conversation, or race two writers.

The libraries are the OpenAI Agents SDK (its sessions) and LangGraph (its checkpointers).
"size" stores the conversation and counts the bytes; "race" lets two processes add a turn
to the same thread at once. Prints a Markdown table.
"""
import argparse
import asyncio
import collections
import contextlib
import multiprocessing
import pathlib
import tempfile
import time
import typing
from importlib.metadata import version

import psycopg
from agents import ItemHelpers, SQLiteSession
from agents.extensions.memory import SQLAlchemySession
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine


def words(x=1):
    """Yield the words that a 64-bit LCG picks, for ever."""
    while True:
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        yield f" w{x >> 58}ord"


def conversation(turns):
    """Yield (user text, assistant text) for each turn; the same on every run."""
    word = words()
    for i in range(turns):
        user = f"question {i}:" + "".join(next(word) for _ in range(30))
        yield user, f"answer {i}:" + "".join(next(word) for _ in range(100))


class AgentsStore:
    """Sessions of the OpenAI Agents SDK."""

    def __init__(self, location, split=False, delay=0):
        self.location, self.split, self.delay, self.seen = location, split, delay, None
        self.sessions, self.loop, self.engine = {}, asyncio.new_event_loop(), None
        if not isinstance(location, pathlib.Path):
            self.engine = create_async_engine(location.set(drivername="postgresql+asyncpg"))

    def session(self, thread):
        if thread not in self.sessions:
            self.sessions[thread] = (
                SQLAlchemySession(thread, engine=self.engine, create_tables=True)
                if self.engine else SQLiteSession(thread, self.location))
        return self.sessions[thread]

    def turn(self, thread, number, user, assistant):
        """Add a turn's items, in the shape in which the SDK's Runner stores them."""
        part = ResponseOutputText(type="output_text", text=assistant, annotations=[], logprobs=[])
        output = ResponseOutputMessage(id=f"msg_{number:048x}", type="message", role="assistant",
                                       status="completed", content=[part])
        question = ItemHelpers.input_to_new_input_list(user)
        answer = [output.model_dump(exclude_unset=True)]
        self.loop.run_until_complete(self.add(self.session(thread), question, answer))

    async def add(self, session, question, answer):
        if self.delay:  # in a race: read before the turn, as a run does
            self.seen = len(await session.get_items())
        if self.split:  # store the question before the model is asked, as Runner does
            await session.add_items(question)
            question = []
        await asyncio.sleep(self.delay)
        await session.add_items(question + answer)

    def read(self, thread):
        items = self.loop.run_until_complete(self.session(thread).get_items())
        return [i["content"] if i["role"] == "user" else i["content"][0]["text"] for i in items]

    def close(self):
        if self.engine:
            self.loop.run_until_complete(self.engine.dispose())
        else:
            for session in self.sessions.values():
                session.close()
        self.loop.close()


class DeltaState(typing.TypedDict):  # as the docstring of this (beta) reducer shows it
    messages: typing.Annotated[list, DeltaChannel(_messages_delta_reducer)]


class LangGraphStore:
    """A graph of messages with one node and a checkpointer, invoked once per turn."""

    def __init__(self, location, schema=MessagesState, durability=None, delay=0):
        self.durability = {"durability": durability} if durability else {}
        self.delay, self.reply, self.seen = delay, None, None
        saver = SqliteSaver
        if not isinstance(location, pathlib.Path):
            saver, location = PostgresSaver, location.render_as_string(hide_password=False)
        stack = contextlib.ExitStack()
        self.saver = stack.enter_context(saver.from_conn_string(str(location)))
        self.close = stack.close
        self.saver.setup()
        builder = StateGraph(schema).add_node("node", self.node)
        builder.add_edge(START, "node").add_edge("node", END)
        self.graph = builder.compile(checkpointer=self.saver)

    def node(self, state):
        self.seen = len(state["messages"]) - 1
        time.sleep(self.delay)
        return {"messages": [AIMessage(self.reply)]}

    def turn(self, thread, number, user, assistant):
        self.reply = assistant
        config = {"configurable": {"thread_id": thread}}
        self.graph.invoke({"messages": [HumanMessage(user)]}, config, **self.durability)

    def read(self, thread):
        state = self.graph.get_state({"configurable": {"thread_id": thread}})
        return [m.content for m in state.values["messages"]]

    def forked(self, thread):
        """Whether some checkpoint of the thread has two children."""
        saved = self.saver.list({"configurable": {"thread_id": thread}})
        parents = [str(checkpoint.parent_config) for checkpoint in saved]
        return len(parents) > len(set(parents))


KINDS = {
    "agents": (AgentsStore, {}),
    "agents-split": (AgentsStore, {"split": True}),
    "langgraph": (LangGraphStore, {}),
    "langgraph-exit": (LangGraphStore, {"durability": "exit"}),
    "langgraph-delta": (LangGraphStore, {"schema": DeltaState}),
    "langgraph-delta-exit": (LangGraphStore, {"schema": DeltaState, "durability": "exit"}),
}
TARGETS = [f"{kind}:{engine}" for engine in ("sqlite", "postgres") for kind in KINDS]


def open_store(target, location, **options):
    store, fixed = KINDS[target.split(":")[0]]
    return contextlib.closing(store(location, **fixed, **options))


@contextlib.contextmanager
def fresh_place(target, args):
    """Yield a new SQLite path or PostgreSQL URL and what counts its bytes; then remove it."""
    if target.endswith(":sqlite"):
        with tempfile.TemporaryDirectory(dir=args.dir) as folder:
            files = pathlib.Path(folder)
            yield files / "db", lambda: {f.name: f.stat().st_size for f in files.iterdir()}
        return
    url = make_url(args.postgres).set(drivername="postgresql", database="measure_peers")
    query = "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables"

    def sizes():
        with psycopg.connect(url.render_as_string(hide_password=False)) as conn:
            return dict(conn.execute(query))

    with psycopg.connect(args.postgres, autocommit=True) as admin:
        admin.execute("CREATE DATABASE measure_peers")
        try:
            yield url, sizes
        finally:
            admin.execute("DROP DATABASE measure_peers WITH (FORCE)")


def size(target, args):
    """Store the conversation turn by turn, read it back, and add up the bytes."""
    with fresh_place(target, args) as (location, sizes):
        with open_store(target, location) as store:
            turns, begun = list(conversation(args.turns)), time.monotonic()
            for number, (user, assistant) in enumerate(turns):
                store.turn("size", number, user, assistant)
            seconds = time.monotonic() - begun
            same = "same" if store.read("size") == list(sum(turns, ())) else "DIFFERS"
        parts = sizes()
    detail = ", ".join(f"{name} {count:,}" for name, count in parts.items())
    print(f"| {target} | {args.turns} | {sum(parts.values()):,} | {seconds:.1f} | {same} "
          f"| {detail} |", flush=True)


def race_writer(target, location, letter, args, barrier):
    """One of the two writers: add one turn to each thread just as the other does."""
    reports = []
    with open_store(target, location, delay=0.05) as store:  # seconds a turn takes
        for attempt in range(args.tries):
            barrier.wait(60)
            try:
                store.turn(f"race{attempt}", ord(letter), f"q{letter}", f"a{letter}")
                reports.append((store.seen, "no error"))
            except Exception as exc:  # what a writer is told is part of the result
                reports.append((store.seen, type(exc).__name__))
    return reports


def race(target, args):
    """Let two processes add a turn to the same threads at once; report what is left."""
    outcomes, spawn = collections.Counter(), multiprocessing.get_context("spawn")
    with fresh_place(target, args) as (location, _), open_store(target, location) as store:
        for attempt in range(args.tries):
            store.turn(f"race{attempt}", 0, "q0", "a0")
        with spawn.Manager() as manager, spawn.Pool(2) as pool:
            barrier = manager.Barrier(2)
            reports = pool.starmap(race_writer, [
                (target, location, letter, args, barrier) for letter in "AB"], chunksize=1)
        for attempt, pair in enumerate(zip(*reports)):
            # Number the writers by whose text comes first, so that mirror images count as one.
            thread, numbers = f"race{attempt}", {}
            left = [text[0] + numbers.setdefault(text[1], str(len(numbers) + 1))
                    for text in store.read(thread)[2:]]
            told = [f"read {seen}: {error}" for seen, error in sorted(pair, key=str)]
            if isinstance(store, LangGraphStore):
                told.append("forked" if store.forked(thread) else "not forked")
            outcomes[", ".join([" ".join(left), *told])] += 1
    detail = "<br>".join(f"{count}x {outcome}" for outcome, count in outcomes.most_common())
    print(f"| {target} | {args.tries} | {detail} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["size", "race"])
    parser.add_argument("--only", action="append", choices=TARGETS, help="may be repeated")
    parser.add_argument("--dir", help="folder for the SQLite files")
    parser.add_argument("--postgres", metavar="URI", help="where measure_peers may be made")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--tries", type=int, default=20)
    args = parser.parse_args()
    names = "openai-agents langgraph langgraph-checkpoint-sqlite langgraph-checkpoint-postgres"
    print(", ".join(f"{name} {version(name)}" for name in names.split()) + "\n")
    work, *heads = (size, "turns", "bytes", "seconds", "read back", "parts")
    if args.command == "race":
        work, *heads = (race, "tries", "left after turn 0, items each read, what each was told")
    print(f"| store | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|")
    for target in args.only or TARGETS:
        if args.postgres or target.endswith(":sqlite"):
            work(target, args)


if __name__ == "__main__":
    main()
