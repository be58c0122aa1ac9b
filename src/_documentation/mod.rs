#![doc = include_str!("links.md")]
#![doc = include_str!("../../docs/README.md")]

// The pages of `docs/`, as modules without items: rustdoc shows them and runs their programs. `links.md` says where their
// links lead here. Of two definitions of a link the first one holds, and that file comes before each page, which ends with
// definitions for readers of the repository.

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/quick-start.md")]
pub mod quick_start {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/budgets.md")]
pub mod budgets {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/pins.md")]
pub mod pins {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/tools.md")]
pub mod tools {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/rag.md")]
pub mod rag {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/compaction.md")]
pub mod compaction {}

// Its programs need a store.
#[cfg(any(not(doctest), feature = "sqlite"))]
#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/stores.md")]
pub mod stores {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/caching.md")]
pub mod caching {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/counting.md")]
pub mod counting {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/debugging.md")]
pub mod debugging {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/rag-chat.md")]
pub mod rag_chat {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/snapshots.md")]
pub mod snapshots {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/from-trim-messages.md")]
pub mod from_trim_messages {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/guide/from-a-loop.md")]
pub mod from_a_loop {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/rules.md")]
pub mod rules {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/options.md")]
pub mod options {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/events.md")]
pub mod events {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/session.md")]
pub mod session {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/tool.md")]
pub mod tool {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/screen.md")]
pub mod screen {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/providers.md")]
pub mod providers {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/explaining.md")]
pub mod explaining {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/compaction.md")]
pub mod compaction_reference {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/counting.md")]
pub mod counting_reference {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/performance.md")]
pub mod performance {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/examples.md")]
pub mod examples {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/reference/glossary.md")]
pub mod glossary {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/README.md")]
pub mod python {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/langchain.md")]
pub mod python_langchain {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/openai-agents.md")]
pub mod python_openai_agents {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/pydantic-ai.md")]
pub mod python_pydantic_ai {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/llama-index.md")]
pub mod python_llama_index {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/haystack.md")]
pub mod python_haystack {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/litellm.md")]
pub mod python_litellm {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/hermes.md")]
pub mod python_hermes {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/python/batches.md")]
pub mod python_batches {}
