//! A document as it is sent.

use super::{Form, RagItem};
use crate::text::hash::text_hash;
use std::{ops::Deref, sync::Arc};

/// A document as it is sent: in one of its forms (rule S17), with its label, if it has one (rule S16).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelledItem<'a> {
    pub(crate) item: &'a RagItem,
    pub(crate) form: Form,
    pub(crate) label: Option<u32>,
}

impl<'a> LabelledItem<'a> {
    /// Returns the hash of the text that is sent; `whole` is that of the whole text.
    pub(crate) fn hash(&self, whole: u64) -> u64 {
        if self.form.is_whole() { whole } else { text_hash(self.sent_text()) }
    }

    /// Returns the text that is sent.
    pub(crate) fn sent_text(&self) -> &'a Arc<str> {
        self.item.text_in(self.form)
    }
}

impl<'a> From<&'a RagItem> for LabelledItem<'a> {
    fn from(item: &'a RagItem) -> Self {
        Self { item, form: Form::WHOLE, label: None }
    }
}

impl Deref for LabelledItem<'_> {
    type Target = RagItem;

    fn deref(&self) -> &RagItem {
        self.item
    }
}
