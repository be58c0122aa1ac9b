"""Plans the content of a language model's prompt within an exact token budget, and gives a reason for each
item.

    from context_window import Conversation, Manager

    manager = Manager("gpt-4o")
    log = Conversation([{"role": "system", "content": "Answer from the documents."}])
    log.push({"role": "user", "content": "How long do refunds take?"})
    plan = manager.plan(log, documents=[("refunds", 0.92, "Refunds take 5 days.")])
    plan.messages()  # the messages to send
    print(plan)  # included and excluded items with their reasons

All figures are in tokens unless stated otherwise. The adapters for frameworks are separate modules:
`context_window.langchain`, `openai_agents`, `pydantic_ai`, `llama_index`, `haystack`, `litellm`.
This package imports none of them.

Adapters warn of `ContextWindowWarning`. With `on_overflow="raise"` they raise `PromptTooLargeError`.
"""

from ._core import (
    BudgetError,
    BusyError,
    CancelledError,
    Change,
    Committed,
    CompactionError,
    CompactionJob,
    ConfigError,
    ConflictError,
    ContextWindowError,
    Conversation,
    CountError,
    Document,
    ExcludedItem,
    Explanation,
    Frame,
    Hit,
    IncludedItem,
    InputError,
    ItemMessage,
    Journal,
    JournalError,
    Manager,
    NoSummaryError,
    NotFoundError,
    NothingToCompactError,
    NotLoadedError,
    NotSmallerError,
    Plan,
    RankedRecall,
    Recall,
    RecallError,
    Scores,
    StaleError,
    Store,
    StoreError,
    SummariserError,
    TemplateError,
    __version__,
    bytes_handed_over,
    count,
    evaluate,
    evaluate_batch,
    is_context_overflow,
    is_reasoning_refusal,
    models,
    plan_batch,
    presets,
    replay_batch,
)
from ._errors import ContextWindowWarning, PromptTooLargeError

__all__ = [
    "BudgetError",
    "BusyError",
    "CancelledError",
    "Change",
    "Committed",
    "CompactionError",
    "CompactionJob",
    "ConfigError",
    "ConflictError",
    "ContextWindowError",
    "ContextWindowWarning",
    "Conversation",
    "CountError",
    "Document",
    "ExcludedItem",
    "Explanation",
    "Frame",
    "Hit",
    "IncludedItem",
    "InputError",
    "ItemMessage",
    "Journal",
    "JournalError",
    "Manager",
    "NoSummaryError",
    "NotFoundError",
    "NotLoadedError",
    "NotSmallerError",
    "NothingToCompactError",
    "Plan",
    "PromptTooLargeError",
    "RankedRecall",
    "Recall",
    "RecallError",
    "Scores",
    "StaleError",
    "Store",
    "StoreError",
    "SummariserError",
    "TemplateError",
    "__version__",
    "bytes_handed_over",
    "count",
    "evaluate",
    "evaluate_batch",
    "is_context_overflow",
    "is_reasoning_refusal",
    "models",
    "plan_batch",
    "presets",
    "replay_batch",
]
