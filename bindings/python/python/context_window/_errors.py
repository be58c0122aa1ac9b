"""The warning and the error of the adapters. This module imports only the planner."""

from __future__ import annotations

from ._core import BudgetError, Plan


class ContextWindowWarning(UserWarning):
    """A warning of an adapter: a prompt above its budget, a refused summary, or an unplanned request."""


class PromptTooLargeError(BudgetError):
    """The required items of a prompt exceed its budget, and `on_overflow` is `"raise"`. `plan` is the plan."""

    def __init__(self, message: str, plan: Plan | None = None) -> None:
        super().__init__(message)
        self.plan = plan
