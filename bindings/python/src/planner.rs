//! The planner of the core for one model, with the arguments that it was made of.

use crate::{
    error::{input, raised},
    json,
    wire::wire_format,
    work::interruptible,
};
use context_window as core;
use core::{ContextWindowManager, Model, Registry, TokenCounter, WireFormat, config::ConfigLayers};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use std::{path::PathBuf, sync::Arc};

/// A planner for one model with one set of options. It never changes, and a copy is cheap.
#[derive(Clone)]
pub(crate) struct Planner {
    inner: Arc<Inner>,
}

struct Inner {
    manager: ContextWindowManager,
    model: Model,
    /// The constructor's arguments, for pickling.
    made_of: MadeOf,
}

/// The constructor's arguments, with the contents of files. In a pickle, they are a dict.
#[derive(Clone, Default, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MadeOf {
    pub(crate) model: String,
    pub(crate) preset: Option<String>,
    /// The name of the options in errors, and the options as TOML.
    pub(crate) config: Option<(String, String)>,
    pub(crate) tokenizer: Option<String>,
    /// The name and the text of a model file.
    pub(crate) models: Option<(String, String)>,
    /// The wire format, if it is not the model's own.
    pub(crate) wire_format: Option<String>,
}

impl MadeOf {
    /// Creates the planner's state. `form` is the parsed wire format.
    fn manager(self, form: Option<WireFormat>) -> Result<Inner, core::Error> {
        let mut layers = ConfigLayers::new();
        if let Some(preset) = &self.preset {
            layers = layers.with_pairs("preset", [("preset", preset)]);
        }
        if let Some((name, text)) = &self.config {
            layers = layers.with_text(name, text);
        }
        let config = layers.load()?.config;
        let model = registered(&self.model, self.models.as_ref())?;
        let model = form.into_iter().fold(model, Model::with_wire_format);
        let manager = match &self.tokenizer {
            Some(name) => ContextWindowManager::new(model.clone(), TokenCounter::named(name)?, config)?,
            None => ContextWindowManager::configured(model.clone(), config)?,
        };
        Ok(Inner { manager, model, made_of: self })
    }
}

/// Finds a model by name in a file of models, given by its name and text, and in the built-in list.
pub(crate) fn registered(model: &str, models: Option<&(String, String)>) -> Result<Model, core::Error> {
    Ok(match models {
        Some((name, text)) => {
            Registry::from_toml(text, name)?.with_fallback(Registry::built_in()?).model(model)
        }
        None => Model::named(model)?,
    })
}

/// Returns the name and the text of options as TOML, from a file, a string, or a dict of tables. Options that
/// are not in a file have the name `place`.
pub(crate) fn config_text(given: &Bound<'_, PyAny>, place: &str) -> PyResult<(String, String)> {
    if given.is_instance_of::<PyString>() {
        let text: String = given.extract()?;
        let is_path = !text.is_empty() && !is_toml(&text);
        return if is_path { file_text(given) } else { Ok((place.into(), text)) };
    }
    if given.is_instance_of::<PyDict>() {
        let json = json::dumps(given, place)?;
        let mut tables: serde_json::Value =
            serde_json::from_str(&json).map_err(|error| input(error.to_string()))?;
        unset(&mut tables);
        let text = toml::to_string(&tables).map_err(|error| input(format!("{place}: {error}")))?;
        return Ok((place.into(), text));
    }
    file_text(given)
}

/// Returns true for the text of options, and false for the path of their file.
pub(crate) fn is_toml(text: &str) -> bool {
    // Every line of options contains one of these characters.
    text.contains(['=', '[', '\n', '#'])
}

/// Removes options that are None, because they count as unset.
fn unset(tables: &mut serde_json::Value) {
    if let serde_json::Value::Object(table) = tables {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(unset);
    }
}

/// Returns the name and the text of a file.
pub(crate) fn file_text(path: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    let path: PathBuf = path.extract()?;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path);
    Ok((name.clone(), text.map_err(|error| input(format!("{name}: cannot be read: {error}")))?))
}

impl Planner {
    pub(crate) fn core(&self) -> &ContextWindowManager {
        &self.inner.manager
    }

    pub(crate) fn model(&self) -> &Model {
        &self.inner.model
    }

    /// Creates a planner from the arguments of a constructor.
    pub(crate) fn made(py: Python<'_>, made_of: MadeOf) -> PyResult<Self> {
        let form = made_of.wire_format.as_deref().map(wire_format).transpose()?;
        let inner = interruptible(py, move |_| made_of.manager(form))?.map_err(raised)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Creates a planner for a model by name. `texts` are options as TOML, and later ones override earlier
    /// ones. `tokenizer` replaces the model's own tokenizer.
    pub(crate) fn layered<const N: usize>(
        model: &str,
        tokenizer: Option<&str>,
        texts: [&str; N],
    ) -> Result<Self, core::Error> {
        let layers = texts.into_iter().filter(|text| !text.is_empty());
        let layers = layers.fold(ConfigLayers::new(), |layers, text| layers.with_text("config", text));
        let mut model = Model::named(model)?;
        if let Some(name) = tokenizer.filter(|name| model.tokenizer.as_deref() != Some(*name)) {
            model.tokenizer = Some(name.to_owned());
        }
        let manager = ContextWindowManager::configured(model.clone(), layers.load()?.config)?;
        // Planners of batches are never pickled, so the arguments are not needed.
        Ok(Self { inner: Arc::new(Inner { manager, model, made_of: MadeOf::default() }) })
    }

    /// Returns the constructor's arguments.
    pub(crate) fn made_of(&self) -> &MadeOf {
        &self.inner.made_of
    }
}
