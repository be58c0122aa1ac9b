"""Compares `trim_messages` of LangChain (with tiktoken), of LiteLLM, and of this package, in CPU
milliseconds.

    python benches/trim.py [MESSAGES ...]

Each one runs in its own process. The figures are its import, its first call, and the median of calls after
each new turn. A conversation of 20,000 messages is also planned at each turn, with the milliseconds and the
bytes of JSON passed to the planner.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BUDGET = 8_000
WARM = 20
WORDS = "the kettle is on the stove and the tea will be ready in a few minutes so please wait here "


def messages(count: int) -> list[dict[str, Any]]:
    """Returns a conversation with a tool in every turn and with different texts."""
    made: list[dict[str, Any]] = [{"role": "system", "content": "You are brief."}]
    for at in range(count):
        text = f"{at} {WORDS[at % 40 :]}{at * 7919 % 10_007} {WORDS * (1 + at % 3)}"
        kind = at % 4
        if kind == 0:
            made.append({"role": "user", "content": text})
        elif kind == 1:
            call = {
                "id": f"c{at}",
                "type": "function",
                "function": {"name": "look", "arguments": json.dumps({"at": at})},
            }
            made.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif kind == 2:
            made.append({"role": "tool", "tool_call_id": f"c{at - 1}", "content": text})
        else:
            made.append({"role": "assistant", "content": text})
    return [*made[: count - 1], {"role": "user", "content": "And now?"}]


def cpu() -> float:
    return time.process_time() * 1e3


def shipped_encodings() -> None:
    """Uses LiteLLM's copy of the tables that tiktoken would otherwise load over the network."""
    spec = importlib.util.find_spec("litellm")
    if spec is not None and spec.origin is not None and "TIKTOKEN_CACHE_DIR" not in os.environ:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers")


def lane(name: str, count: int) -> dict[str, Any]:
    """Measures one package: import, first call and later calls in CPU milliseconds, and the number of
    remaining messages.
    """
    given = messages(count)
    shipped_encodings()
    start = cpu()
    if name == "langchain":
        import tiktoken
        from langchain_core.messages import convert_to_messages, trim_messages

        encoding = tiktoken.get_encoding("o200k_base")

        def tokens(several: Any) -> int:
            calls = [json.dumps(getattr(one, "tool_calls", None) or "") for one in several]
            return sum(
                4 + len(encoding.encode(one.text)) + len(encoding.encode(call)) for one, call in zip(several, calls)
            )

        def trim(several: Any) -> Any:
            return trim_messages(
                several, max_tokens=BUDGET, token_counter=tokens, include_system=True, start_on="human"
            )

    elif name == "litellm":
        from litellm.utils import trim_messages as theirs

        def convert_to_messages(several: Any) -> Any:  # type: ignore[misc]
            return several

        def trim(several: Any) -> Any:
            return theirs([dict(one) for one in several], model="gpt-4o", max_tokens=BUDGET, trim_ratio=1.0)

    else:
        from context_window.langchain import trim_messages as ours
        from langchain_core.messages import convert_to_messages

        def trim(several: Any) -> Any:
            return ours(several, max_tokens=BUDGET, token_counter="gpt-4o", include_system=True, start_on="human")

    imported = cpu() - start
    own = convert_to_messages(given)
    start = cpu()
    left = trim(own)
    first = cpu() - start
    warm = []
    for at in range(WARM):
        more = [{"role": "assistant", "content": f"Answer {at}."}, {"role": "user", "content": f"Question {at}?"}]
        own = [*own, *convert_to_messages(more)]
        start = cpu()
        left = trim(own)
        warm.append(cpu() - start)
    return {"import": imported, "first": first, "warm": statistics.median(warm), "left": len(left)}


def long_conversation(count: int) -> dict[str, Any]:
    """Plans a long conversation at each turn. Measures the time and the bytes passed to the planner."""
    from context_window import Conversation, Manager, bytes_handed_over

    manager, log = Manager("gpt-4o"), Conversation(messages(count))
    whole, took, handed = bytes_handed_over(), [], []
    manager.plan(log, prompt_budget=BUDGET)
    for at in range(200):
        before, start = bytes_handed_over(), cpu()
        plan = manager.plan(log, prompt_budget=BUDGET)
        plan.messages()
        log.push_reply(plan, f"Answer {at}.", {"prompt_tokens": plan.estimated_tokens_total, "completion_tokens": 4})
        log.push({"role": "user", "content": f"Question {at}?"})
        took.append(cpu() - start)
        handed.append(bytes_handed_over() - before)
    return {"whole": whole, "bytes": max(handed), "turn": statistics.median(took)}


def main() -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it fetches a list of models otherwise
    if len(sys.argv) > 2 and sys.argv[1] == "lane":
        print(json.dumps(lane(sys.argv[2], int(sys.argv[3]))))
        return
    if len(sys.argv) > 1 and sys.argv[1] == "long":
        print(json.dumps(long_conversation(int(sys.argv[2]))))
        return
    print(f"{'':14} {'messages':>9} {'import':>9} {'first':>10} {'warm':>10} {'left':>6}   CPU ms, budget {BUDGET:,}")
    for count in [int(one) for one in sys.argv[1:]] or [1_000, 10_000]:
        for name in ("context_window", "langchain", "litellm"):
            ran = subprocess.run(
                [sys.executable, __file__, "lane", name, str(count)], capture_output=True, text=True, timeout=900
            )
            if ran.returncode != 0:
                print(f"{name:14} {count:9,}  failed: {ran.stderr.strip().splitlines()[-1]}")
                continue
            of = json.loads(ran.stdout.splitlines()[-1])
            print(f"{name:14} {count:9,} {of['import']:9.1f} {of['first']:10.2f} {of['warm']:10.2f} {of['left']:6}")
    for count in (2_000, 20_000):
        ran = subprocess.run([sys.executable, __file__, "long", str(count)], capture_output=True, text=True, check=True)
        of = json.loads(ran.stdout)
        told = f"{of['whole']:,} bytes once, then at most {of['bytes']} a turn, {of['turn']:.2f} ms a turn"
        print(f"{count:,} messages, planned each turn: {told}")


if __name__ == "__main__":
    main()
