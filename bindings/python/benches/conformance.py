"""Runs the budget benchmark of `compaction-conformance-kit` with compactions of this package, without a model.

    pip install compaction-conformance-kit==0.8.0
    python benches/conformance.py

The kit plants 20 statements in each of 4 sessions, compacts 5 times, and looks for the statements in the text. The
cap is a share of the transcript. The first figure is the per cent of all statements that survive, the others are
the medians of each kind. A planner that counts 4 characters as a token makes the texts:

- `digest`: a digest of all turns, as long as the cap.
- `window`: a prompt with the newest turns.
- `compacted`: a prompt with a digest of the older turns, as `compact_if_due` makes it, and the newest turns.
- `+pins`: the statements that begin with "SAFETY RULE" or "HARD CONSTRAINT" are pinned.
- `truncation`: the end of the transcript, by the kit itself.

Per cent of all statements with version 0.8.0, and all texts within the cap:

| cap | digest | window | window+pins | compacted | compacted+pins | truncation |
| --- | --- | --- | --- | --- | --- | --- |
| 10 % | 8.7 | 5.0 | 21.2 | 0.0 | 5.0 | 5.0 |
| 20 % | 23.7 | 15.0 | 41.2 | 10.0 | 31.2 | 18.8 |
| 30 % | 36.2 | 21.2 | 48.7 | 18.8 | 50.0 | 27.5 |
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from context_window import Conversation, Manager

KIT = "0.8.0"
SEEDS = (1, 2, 3, 4)
CAPS = (0.10, 0.20, 0.30)
CHARACTERS = 4  # per token
PINNED = ("SAFETY RULE", "HARD CONSTRAINT")


def manager(**compaction: Any) -> Manager:
    return Manager("conformance", tokenizer=f"chars/{CHARACTERS}", config={"compaction": compaction})


def prompt(planner: Manager, log: Conversation, budget: int) -> str:
    messages: list[Any] = planner.plan(log, prompt_budget=budget).messages("openai")
    return "\n".join(f"[{one['role']}] {one['content']}" for one in messages)


def digest(log: Conversation, budget: int) -> str:
    ids = log.ids()
    # A digest has at most half of the tokens of a prompt.
    job = manager(digest={"max_tokens": max(budget, 50)}).compaction_due(
        log, first=ids[1], last=ids[-1], prompt_budget=2 * budget
    )
    assert job is not None
    return job.digest()


def window(log: Conversation, budget: int) -> str:
    return prompt(manager(enabled=False), log, budget)


def compacted(log: Conversation, budget: int) -> str:
    planner = manager()
    planner.compact_if_due(log, prompt_budget=budget)
    return prompt(planner, log, budget)


class Compactor:
    """A compactor of the kit. `compact_log` turns a conversation and a budget in tokens into a text."""

    def __init__(self, name: str, compact_log: Callable[[Conversation, int], str], has_pins: bool) -> None:
        self.name, self.compact_log, self.has_pins = name, compact_log, has_pins

    def compact(self, turns: Sequence[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        from compaction_kit.compacted import CompactedContext

        text = "\n".join(turn.text for turn in turns)
        # From the second round on, the only turn is the last result, which fits.
        if budget_chars is not None and len(text) > budget_chars:
            log = Conversation([{"role": turn.role, "content": turn.text} for turn in turns])
            for id, turn in zip(log.ids(), turns):
                if self.has_pins and turn.text.startswith(PINNED):
                    log.pin_message(id)
            text = self.compact_log(log, budget_chars // CHARACTERS)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def main() -> None:
    try:
        from compaction_kit.benchmark import run_budget_benchmark
        from compaction_kit.compactors import LossyTruncationCompactor
    except ImportError:
        sys.exit(f"compaction_kit is not installed: pip install compaction-conformance-kit=={KIT}")
    if (found := version("compaction-conformance-kit")) != KIT:
        print(f"compaction-conformance-kit {found} is installed; the recorded figures are those of {KIT}")
    compactors: dict[str, Callable[[], Any]] = {
        "digest": lambda: Compactor("digest", digest, False),
        "window": lambda: Compactor("window", window, False),
        "window+pins": lambda: Compactor("window+pins", window, True),
        "compacted": lambda: Compactor("compacted", compacted, False),
        "compacted+pins": lambda: Compactor("compacted+pins", compacted, True),
        # Its own default keeps 30 % in each round, and so nothing after five.
        "truncation": lambda: LossyTruncationCompactor(keep_fraction=1.0),
    }
    names = [*compactors]
    entries = run_budget_benchmark(compactors, budgets=CAPS, seeds=SEEDS)["entries"]
    kinds = [*entries[0]["randomized"]["final_median_by_type"]]
    print(f"{'cap':>4}  {'compactor':<14}  {'fits':<4}  {'all':>5}  " + "  ".join(f"{kind:>15}" for kind in kinds))
    for entry in sorted(entries, key=lambda one: (one["budget_fraction"], names.index(one["compactor"]))):
        figures = entry["randomized"]
        median = "  ".join(f"{100 * figures['final_median_by_type'][kind]:15.1f}" for kind in kinds)
        fits = "yes" if entry["budget_compliant"] else "no"
        survival = 100 * figures["overall_final_survival"]
        print(f"{entry['budget_fraction']:4.0%}  {entry['compactor']:<14}  {fits:<4}  {survival:5.1f}  {median}")


if __name__ == "__main__":
    main()
