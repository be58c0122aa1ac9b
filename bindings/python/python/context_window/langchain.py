"""LangChain: a token budget for an agent's requests, counts for its own middlewares, and two drop-in
replacements.

    agent = create_agent(model, tools, middleware=[ContextWindowMiddleware("gpt-4o")])

The agent's history stays complete: only the messages for the model are planned. Supports langchain 1.5 and
langchain-core 1.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._langchain_compressor import ContextWindowCompressor
from ._langchain_counter import TokenCounter, digest
from ._langchain_trim import trim_messages

if TYPE_CHECKING:
    from ._langchain_agent import ContextWindowMiddleware

__all__ = ["ContextWindowCompressor", "ContextWindowMiddleware", "TokenCounter", "digest", "trim_messages"]


def __getattr__(name: str) -> Any:
    # Only the middleware needs `langchain`. The rest needs `langchain-core` alone, which imports in half the
    # time.
    if name == "ContextWindowMiddleware":
        from . import _langchain_agent

        return _langchain_agent.ContextWindowMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
