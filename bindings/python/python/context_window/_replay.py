"""Plans of lists of messages that depend only on the list: for drop-in replacements and stateless hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ._core import Plan
from ._history import History

T = TypeVar("T")


def replay(history: History[T], given: Sequence[T], request: Mapping[str, Any], is_reply: Callable[[T], bool]) -> Plan:
    """Plans a list of messages. The result depends only on the list and the request.

    Earlier prompts, and the processes that sent them, are unknown. So each reply in the list is stored with a
    plan of the messages before it. If a list continues an earlier one, only its new messages are planned.
    """
    # A previous prompt of another list must not influence this plan.
    asked = {**request, "previous": None}
    with history.lock:
        known = history.known(given)
        if known < len(history):
            history.reset()
            known = 0
        replies = [at for at in range(max(known, 1), len(given)) if is_reply(given[at])]
        if known == 0 and replies:
            # If everything fits, storing the newest reply has the same effect as storing all of them.
            if is_whole(history.plan(given[: replies[-1]], **asked)):
                replies = replies[-1:]
            else:
                history.reset()
        for at in replies:
            history.commit(history.plan(given[:at], **asked), given[at])
        return history.plan(given, **asked)


def is_whole(plan: Plan) -> bool:
    """Checks if a prompt contains every message unchanged."""
    return not plan.excluded and plan.overflow is None and not any(one.changed for one in plan.by_item())
