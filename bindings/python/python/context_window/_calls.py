"""Calls of an application's functions, which may be asynchronous."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def call_async(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function in a separate thread, and awaits its result if it is awaitable."""
    result = await asyncio.to_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def call_sync(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function. Raises `TypeError` if its result is awaitable, because nothing can await it here."""
    result = function(*arguments)
    if not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()
    raise TypeError(f"{name}: this function is asynchronous, and the call is not; use the asynchronous call")
