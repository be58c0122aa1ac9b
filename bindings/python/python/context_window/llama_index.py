"""LlamaIndex: a language model with a token budget for every step of a tool loop, a memory, and a node
postprocessor.

    llm = ContextWindowLLM(OpenAI("gpt-4o"), "gpt-4o", prompt_budget=8_000)
    memory = ContextWindowMemory.from_defaults(llm=llm)
    await FunctionAgent(llm=llm, tools=tools).run("How long do refunds take?", memory=memory)

The history stays complete: only the messages for the model are planned. An agent sends its memory, followed
by the calls and results of the run. So only the language model sees the whole request. LlamaIndex's own
memories cut the history earlier, by a limit of their own. Supports llama-index-core 0.14.
"""

from ._llama_index_llm import ContextWindowLLM
from ._llama_index_memory import ContextWindowMemory
from ._llama_index_postprocessor import ContextWindowPostprocessor

__all__ = ["ContextWindowLLM", "ContextWindowMemory", "ContextWindowPostprocessor"]
