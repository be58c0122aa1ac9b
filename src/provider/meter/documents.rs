//! Token counts of documents in the block in which they are sent (rules S14, S20, S21).

use super::Meter;
use crate::{
    config::HeaderField,
    error::Error,
    message::Role,
    provider::{header, native, sent_document::SentFormat, weight::Weight, wording},
    rag::LabelledItem,
    tokens::DocumentText,
};

/// Bits by which the cached counts of documents as blocks differ, without citations and with them.
const NATIVE_HASHES: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

impl Meter {
    /// Returns a document between its delimiters.
    pub(crate) fn delimited_document<'i>(&self, item: impl Into<LabelledItem<'i>>) -> String {
        wording::labelled_document(item.into(), &self.header)
    }

    /// Counts a document of the block together with its delimiters. `hash` is the
    /// [`text_hash`](crate::text::hash::text_hash) of the text that is sent.
    pub(crate) fn document<'i>(
        &self,
        item: impl Into<LabelledItem<'i>>,
        hash: u64,
        limit: u64,
    ) -> Result<Weight, Error> {
        let item = item.into();
        // A count as a block, which is longer, has a key of its own.
        let (hash, part) = match self.format() {
            SentFormat::Text => (hash, 0),
            SentFormat::Native { citations } => {
                (hash ^ NATIVE_HASHES[usize::from(citations)], self.frames.part)
            }
        };
        let Some(limit) = limit.checked_sub(part) else { return Ok(Weight::Over) };
        // The cache key has the id and the origin, or any other header as it is written.
        let other = (!self.header.is_default).then(|| header::header_attributes(item, &self.header).into());
        let document = DocumentText {
            text: item.sent_text(),
            hash,
            id: item.id.as_str(),
            origin: header::source(item.item).filter(|_| other.is_none()),
            header: other.as_ref(),
            label: item.label,
        };
        let text = || self.format().written(&[&self.delimited_document(item)]).concat();
        Ok(match self.counter.count_document_within(document, limit, text)?.into() {
            Weight::Exactly(tokens) => Weight::Exactly(tokens.saturating_add(part)),
            Weight::Over => Weight::Over,
        })
    }

    /// Counts the pieces of one document, given between delimiters, as they are sent. Also returns the tokens
    /// of the whole document minus their sum.
    pub(crate) fn document_pieces(&self, sent: &[&str]) -> Result<(Vec<u64>, i128), Error> {
        let written = self.format().written(sent);
        let mut tokens: Vec<u64> =
            written.iter().map(|piece| self.count_recurring(piece)).collect::<Result<_, _>>()?;
        let joined = match written.as_slice() {
            [_] => 0,
            _ => self.joins(&written.concat(), tokens.iter().copied())?,
        };
        if let (Some(first), SentFormat::Native { .. }) = (tokens.first_mut(), self.format()) {
            *first = first.saturating_add(self.frames.part);
        }
        Ok((tokens, joined))
    }

    /// Returns overlapping documents as one text between delimiters, as it is sent, in pieces: one for each.
    /// Each document comes with the bytes at its beginning that the one before it contains.
    pub(crate) fn joined_documents(&self, chunks: &[(LabelledItem<'_>, usize)]) -> Vec<String> {
        wording::joined_documents(chunks, &self.header)
    }

    /// Counts a part of a document without delimiters.
    pub(crate) fn document_part(&self, text: &str) -> Result<u64, Error> {
        self.count_recurring(&match self.format() {
            SentFormat::Text => wording::delimited_part(text, "document"),
            SentFormat::Native { .. } => native::escaped(text),
        })
    }

    /// Counts the id of a further document in the header of a joined text, and its label.
    pub(crate) fn further_id(&self, item: LabelledItem<'_>) -> Result<u64, Error> {
        let label = match item.label {
            Some(_) => self.count_recurring(&header::further_label(item.label))?,
            None => 0,
        };
        let id = if self.header.contains(HeaderField::Id) {
            self.count_recurring(&header::further_id(&item))?
        } else {
            0
        };
        Ok(id.saturating_add(label))
    }

    /// Returns a number of bytes that bounds the tokens of a document with its delimiters.
    pub(crate) fn document_bytes(&self, item: LabelledItem<'_>) -> u64 {
        // Most plans have the default header, and its length is known without writing it.
        let header = if self.header.is_default {
            // Escapes lengthen `"` to 6 bytes in id and origin.
            (item.id.as_str().len() + header::source(item.item).map_or(0, |source| source.len())) * 6
        } else {
            header::header_attributes(item, &self.header).len()
        };
        let label = item.label.map_or(0, |label| header::label(label).len() + 9);
        // An escape lengthens `<d` by one byte in the text.
        let bytes = item.sent_text().len() * 2 + header + 64 + label;
        // JSON lengthens a character by five bytes at most.
        (if self.format() == SentFormat::Text { bytes } else { bytes * 6 + 256 }) as u64
    }

    /// Returns the tokens of the message around documents, without the documents. A message of native ones
    /// has no lines of its own, and the text before them and each of them is a part.
    pub(crate) fn block(&self) -> u64 {
        let text = match (self.format(), &self.layout.introduction) {
            (SentFormat::Text, _) => self.frames.part + self.lines,
            (SentFormat::Native { .. }, Some(_)) => self.frames.part + self.introduction_tokens,
            (SentFormat::Native { .. }, None) => 0,
        };
        self.role_frame(Role::User) + text
    }

    /// Returns true if the counts of the block and of its documents add up to the count of the whole.
    pub(crate) fn block_adds_up(&self) -> bool {
        // Each native document is counted by itself.
        self.format() != SentFormat::Text || self.counter.adds_up_at_delimiters()
    }
}
