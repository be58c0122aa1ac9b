//! `OpenAI` Chat and Responses as the types of the crate `async-openai`.

use crate::error::{Error, Repr};
use ::async_openai::types::{chat::CreateChatCompletionRequest, responses::CreateResponse};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub(super) fn chat(body: &impl Serialize, model: &str) -> Result<CreateChatCompletionRequest, Error> {
    typed(body, model)
}

pub(super) fn responses(body: &impl Serialize, model: &str) -> Result<CreateResponse, Error> {
    typed(body, model)
}

/// The body with the model's name, as a type that reads it.
fn typed<T: DeserializeOwned>(body: &impl Serialize, model: &str) -> Result<T, Error> {
    let fault = |error: serde_json::Error| {
        let detail = format!("{error}; send the JSON body instead");
        Error::new(Repr::Input { place: "async-openai".into(), detail })
    };
    let mut fields: Map<String, Value> = match serde_json::to_value(body).map_err(fault)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("model".into(), model.into());
    serde_json::from_value(Value::Object(fields)).map_err(fault)
}
