//! Models and their providers: limits, prices, tokenizers, wire formats and constraints, the registry of
//! models, and request bodies.
//!
//! ```
//! use context_window::provider::{ModelEntry, Price, Registry};
//!
//! # fn main() -> Result<(), context_window::Error> {
//! let entry: &ModelEntry = Registry::built_in()?.entry("gpt-4o").expect("it is in the registry");
//! let price: &Price = entry.price.as_ref().expect("its price is known");
//! assert_eq!((entry.context_len, price.input), (Some(128_000), 2.5)); // US dollars a million tokens
//! # Ok(())
//! # }
//! ```

pub(crate) mod media_prices;
pub(crate) mod model;
pub(crate) mod header;
#[doc(hidden)]
pub mod wording;
pub(crate) mod native;
pub(crate) mod sent_document;
#[doc(hidden)]
pub mod conform;
#[cfg(feature = "chat-template")]
pub(crate) mod control;
pub mod render;
pub(crate) mod weight;
#[doc(hidden)]
pub mod meter;

#[cfg(feature = "chat-template")]
pub use model::ChatTemplate;
pub use model::{Limits, LimitsSource, Model, ModelEntry, Price, Registry, RequestLimits};
#[doc(hidden)]
pub use model::{PriceStep, StatedLimits};
