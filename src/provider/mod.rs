//! Models: limits, prices, tokenizers, wire formats and what providers require; the registry of models; request bodies.

pub(crate) mod media_prices;
pub(crate) mod model;
#[doc(hidden)]
pub mod wording;
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
#[doc(hidden)]
pub use model::PriceStep;
pub use model::{Limits, LimitsSource, Model, ModelEntry, Price, Registry, RequestLimits, StatedLimits};
