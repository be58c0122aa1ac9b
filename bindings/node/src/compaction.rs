//! Requests for summaries.

use crate::{
    json::{self, WireBody, WireList},
    wire::{body_json, messages_of, wire_format},
};
use context_window as core;
use core::{ItemId, compaction::CompactionRequest, render};
use wasm_bindgen::prelude::*;

/// A prompt that requests a summary from a model. Pass the answer to `Manager.applySummary`.
#[wasm_bindgen]
pub struct CompactionJob {
    job: CompactionRequest,
}

impl CompactionJob {
    pub(crate) fn from_request(job: CompactionRequest) -> Self {
        Self { job }
    }

    pub(crate) fn core(&self) -> &CompactionRequest {
        &self.job
    }
}

#[wasm_bindgen]
impl CompactionJob {
    /// The model whose tokenizer counts the request.
    #[wasm_bindgen(getter)]
    pub fn model(&self) -> String {
        self.job.model().to_owned()
    }

    /// The maximum number of tokens of the summary.
    #[wasm_bindgen(getter, js_name = maxTokens)]
    pub fn max_tokens(&self) -> f64 {
        self.job.max_tokens() as f64
    }

    /// The number of tokens of the request.
    #[wasm_bindgen(getter)]
    pub fn tokens(&self) -> f64 {
        self.job.tokens().tokens as f64
    }

    /// The ids of the messages that the summary replaces.
    #[wasm_bindgen(getter, js_name = archivedIds)]
    pub fn archived_ids(&self) -> Vec<String> {
        // Typed ids mean nothing outside of Rust.
        self.job.archived_ids().iter().map(ItemId::to_string).collect()
    }

    /// The trigger of the compaction.
    #[wasm_bindgen(getter)]
    pub fn trigger(&self) -> String {
        self.job.trigger().text().to_owned()
    }

    /// Returns the request's body, in the model's format or another one.
    pub fn body(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<WireBody, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        Ok(json::value(&body_json(render::body(&self.job, form)))?.unchecked_into())
    }

    /// Returns only the messages of the body.
    pub fn messages(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<WireList, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        Ok(json::value(&messages_of(body_json(render::body(&self.job, form))))?.unchecked_into())
    }
}
