"""The rules that all adapters and drop-in replacements share: their options, and prompts that exceed the
budget.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast, get_args

from ._core import Document, Manager, Plan
from ._errors import ContextWindowWarning, PromptTooLargeError

#: The treatment of a prompt whose required items exceed the budget: an error, a warning (the prompt is sent),
#: or nothing (the prompt is sent).
OnOverflow: TypeAlias = Literal["raise", "warn", "send"]

#: The documents of a request.
Documents: TypeAlias = Iterable[Document | Mapping[str, Any] | tuple[str, float, str]]

_PACKAGE = os.path.dirname(__file__) + os.sep


class PlanOptions(TypedDict, total=False):
    """The arguments of `Manager.plan` that every adapter passes on with each request."""

    tools: Sequence[Mapping[str, Any]] | None
    focus: str | None
    state: Mapping[str, str] | None
    model_context_len: int | None
    max_completion_tokens: int | None
    max_input: int | None
    safety_buffer: int | None
    unknown_limit: bool
    account: str | None
    end_user: str | None
    structured_output: bool
    excluded_messages: bool
    recall: bool


class RequestOptions(PlanOptions, total=False):
    """`PlanOptions` with the budget of a prompt in tokens."""

    prompt_budget: int | None


class TargetOptions(PlanOptions, total=False):
    """`PlanOptions` with the same documents for each request, for adapters with a budget of their own."""

    documents: Documents | None


class DocumentOptions(RequestOptions, total=False):
    """`RequestOptions` with the same documents for each request."""

    documents: Documents | None


def check_options(owner: type, given: Iterable[str], options: type = RequestOptions) -> None:
    """Checks the keyword arguments of an adapter's constructor. Raises `TypeError` for an unknown one, with
    the nearest known name.
    """
    import inspect

    parameters = inspect.signature(getattr(owner, "__init__")).parameters
    own = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD} - {"self"}
    refuse_unknown(owner.__name__, given, options.__annotations__, {*own, *options.__annotations__})


def refuse_unknown(owner: str, given: Iterable[str], allowed: Collection[str], known: Iterable[str]) -> None:
    """Raises `TypeError` for the first name that is not allowed, with the nearest known name."""
    import difflib

    for name in given:
        if name in allowed:
            continue
        names = sorted(known)
        near = difflib.get_close_matches(name, names, 1, 0.6)
        hint = f"; did you mean '{near[0]}'?" if near else f"; expected one of {', '.join(names)}"
        raise TypeError(f"{owner} has no option '{name}'{hint}")


def check_overflow(on_overflow: str) -> OnOverflow:
    """Returns the given policy. Raises `ValueError` for an unknown one."""
    if on_overflow in get_args(OnOverflow):
        return cast(OnOverflow, on_overflow)
    raise ValueError(f"on_overflow: expected 'raise', 'warn' or 'send', not {on_overflow!r}")


class Policy:
    """The treatment of prompts above their budget, and the newest plan of an adapter."""

    def __init__(self, on_overflow: str = "warn") -> None:
        self.on_overflow = check_overflow(on_overflow)
        self.plan: Plan | None = None

    def __reduce__(self) -> Any:
        return type(self), (self.on_overflow,)

    def accept(self, plan: Plan, outcome: str = "They are sent nevertheless.") -> None:
        """Records a plan whose prompt is sent. Raises `PromptTooLargeError` or warns if it exceeds its budget,
        unless `on_overflow` is `"send"`.
        """
        self.plan = plan
        if is_overflow(plan):
            self.report(plan.estimated_tokens_total, plan.prompt_budget, outcome, plan)

    def report(self, tokens: int, budget: int, outcome: str, plan: Plan | None = None) -> None:
        """Raises `PromptTooLargeError` or warns of a prompt above its budget, unless `on_overflow` is
        `"send"`.
        """
        ids = ", ".join(plan.overflow["minimum"][:8]) if plan is not None and plan.overflow is not None else ""
        text = f"the required messages{f' ({ids})' if ids else ''} need {tokens:,} tokens, and the prompt's budget"
        text += f" is {budget:,}"
        if self.on_overflow == "raise":
            raise PromptTooLargeError(text, plan)
        if self.on_overflow == "warn":
            warn(f"{text}. {outcome}")


class Planned:
    """The base of the adapters: their newest plan."""

    _policy: Policy

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest request, or None before the first one."""
        return self._policy.plan


class Backoff:
    """A pause after failures, in requests: 2, 4, 8 and so on up to `most`."""

    def __init__(self, most: int = 64) -> None:
        self._most, self._pause, self._left = most, 1, 0

    def is_over(self) -> bool:
        """Checks if the pause is over. Counts this request."""
        self._left = max(self._left - 1, -1)
        return self._left < 0

    def extend(self) -> int:
        """Doubles the pause. Returns the number of requests that it lasts."""
        self._pause = self._left = min(self._pause * 2, self._most)
        return self._left

    def end(self) -> None:
        """Ends the pause after a success."""
        self._pause, self._left = 1, 0


def is_overflow(plan: Plan) -> bool:
    """Checks if a prompt exceeds its budget."""
    return plan.overflow is not None or plan.estimated_tokens_total > plan.prompt_budget


def warn(text: str) -> None:
    """Warns of `ContextWindowWarning` at the nearest line outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, ContextWindowWarning, stacklevel=level)


def output_tool(name: str, schema: Any, description: str = "") -> dict[str, Any]:
    """Returns the schema of a structured output as a tool. Providers bill it like one."""
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def response_tool(response_format: Any) -> dict[str, Any] | None:
    """Returns the JSON schema of a `response_format` as a tool, or None if it has no schema."""
    if isinstance(response_format, type) and callable(getattr(response_format, "model_json_schema", None)):
        return output_tool(response_format.__name__, getattr(response_format, "model_json_schema")())
    schema = response_format.get("json_schema") if isinstance(response_format, dict) else None
    if not isinstance(schema, dict):
        return None
    return output_tool(str(schema.get("name") or "response"), schema.get("schema") or {})


def manager_of(given: Manager | str) -> Manager:
    """Returns the given manager, or creates one for a model's name. Warns of an unknown name."""
    if isinstance(given, Manager):
        return given
    if isinstance(given, str):
        manager = Manager(given)
        if not manager.known:
            warn(
                f"'{given}' is no known model: its limits and token counts are estimates. Pass a Manager to avoid this warning."
            )
        return manager
    raise TypeError(f"expected a Manager or a model's name, not a {type(given).__name__}")
