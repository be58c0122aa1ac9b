"""Plans of lists of messages that depend only on the list: for drop-in replacements and stateless hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ._core import Plan
from ._history import History

T = TypeVar("T")


#: The number of replies after which the plans begin again with later ones. At most twice as many are stored.
STEP = 64


def replay(history: History[T], given: Sequence[T], request: Mapping[str, Any], is_reply: Callable[[T], bool]) -> Plan:
    """Plans a list of messages. The result depends only on the list and the request.

    Earlier prompts, and the processes that sent them, are unknown. So the newest replies in the list, at least
    `STEP`, are stored with plans of the messages before them. If a list continues an earlier one, only its new
    messages are planned.
    """
    # A previous prompt of another list must not influence this plan.
    options = {**request, "previous": None}
    with history.lock:
        known = history.count_known(given)
        if known < len(history):
            history.reset()
            known = 0
        earlier = len(history.replies)
        replies = [*history.replies, *(at for at in range(max(known, 1), len(given)) if is_reply(given[at]))]
        first, begun = _first_stored(len(replies)), _first_stored(earlier)
        if first != begun:
            history.reset()
            known = earlier = 0
        stored = replies[max(first, earlier) :]
        if known == 0 and stored:
            # If everything fits, storing the newest reply has the same effect as storing all of them.
            if is_complete(history.plan(given[: stored[-1]], **options)):
                stored = stored[-1:]
            else:
                history.reset()
        for at in stored:
            history.commit(history.plan(given[:at], **options), given[at])
        history.replies = replies
        return history.plan(given, **options)


def _first_stored(replies: int) -> int:
    """Returns the number of the first reply that is stored with a plan."""
    return max(replies // STEP - 1, 0) * STEP


def is_complete(plan: Plan) -> bool:
    """Checks if a prompt contains every message unchanged."""
    return not plan.excluded and plan.overflow is None and not any(one.changed for one in plan.by_item())
