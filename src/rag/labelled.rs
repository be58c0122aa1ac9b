//! A document with its label.

use super::RagItem;
use std::ops::Deref;

/// A document as it is sent: with its label, if it has one (rule S16).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelledItem<'a> {
    pub(crate) item: &'a RagItem,
    pub(crate) label: Option<u32>,
}

impl<'a> From<&'a RagItem> for LabelledItem<'a> {
    fn from(item: &'a RagItem) -> Self {
        Self { item, label: None }
    }
}

impl Deref for LabelledItem<'_> {
    type Target = RagItem;

    fn deref(&self) -> &RagItem {
        self.item
    }
}
