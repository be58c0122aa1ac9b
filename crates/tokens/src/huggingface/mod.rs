//! Tokenizers of Hugging Face: any `tokenizer.json`, through the `tokenizers` crate.

use crate::{
    bounds::Bounds,
    error::{Error, Failure, Repr},
};
use serde_json::Value;
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};
use tokenizers::pipeline::{EncodeOptions, Override, PipelineToken, PipelineTokenizer};

mod form;

use form::Form;

/// The maximum size of a `tokenizer.json` in bytes. Current files have 2 to 35 MB.
const MOST_BYTES: u64 = 1 << 28;

/// A tokenizer with the bounds and control tokens of its file.
pub(super) struct HuggingFace {
    tokenizer: PipelineTokenizer,
    pub(super) bounds: Bounds,
    plain: EncodeOptions,
    control: Vec<String>,
    with_control: EncodeOptions,
}

impl HuggingFace {
    /// Parses the text of a `tokenizer.json`. `origin` names it in errors.
    pub(super) fn new(json: &str, origin: &str) -> Result<Self, Error> {
        let refused = |detail: String| Error::new(Repr::File { origin: origin.into(), detail });
        let form = Form::read(json).map_err(&refused)?;
        // The crate reads only its own canonical form, so older files are converted first.
        let tokenizer = tokenizers::from_json(json).or_else(|_| {
            let canonical = tokenizers::canonicalize_str(json).map_err(|error| refused(error.to_string()))?;
            tokenizers::from_json(&canonical).map_err(|error| refused(error.to_string()))
        })?;
        let mut plain = EncodeOptions::no_specials();
        // Padding and truncation would change the count, and some files have settings for both.
        plain.padding = Override::Off;
        plain.truncation = Override::Off;
        let with_control = plain.clone();
        // In plain text a spelled-out control token must count as characters (content is plain text, rule
        // N2).
        plain.encode_special_tokens = true;
        Ok(Self { tokenizer, bounds: form.bounds(), plain, control: form.control_tokens(), with_control })
    }

    /// Counts the tokens of plain text. Control tokens in it count as characters.
    pub(super) fn count(&self, text: &str) -> Result<u64, Failure> {
        self.encode(text, &self.plain)
    }

    /// Counts the tokens of a rendered prompt, in which control tokens are tokens.
    pub(super) fn count_rendered(&self, text: &str) -> Result<u64, Failure> {
        self.encode(text, &self.with_control)
    }

    pub(super) fn control_tokens(&self) -> &[String] {
        &self.control
    }

    fn encode(&self, text: &str, options: &EncodeOptions) -> Result<u64, Failure> {
        // English text has about 4 bytes per token, so this capacity rarely has to grow.
        let mut tokens: Vec<PipelineToken> = Vec::with_capacity(text.len() / 4);
        self.tokenizer.encode_into(text, options, &mut tokens)?;
        Ok(tokens.len() as u64)
    }
}

/// Reads a `tokenizer.json`, or the one in a folder. Returns a name for it, from the file or else its folder,
/// and the text of the file.
pub(super) fn read(path: &Path) -> Result<(String, String), Error> {
    let file: PathBuf = if path.is_dir() { path.join("tokenizer.json") } else { path.into() };
    let text = read_text(&file)
        .map_err(|detail| Error::new(Repr::File { origin: file.display().to_string(), detail }))?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    // Resolves the path first: for `.` or a relative file name, the parent has no name of its own.
    let folder = || {
        let full = file.canonicalize().ok()?;
        Some(full.parent()?.file_name()?.to_string_lossy().into_owned())
    };
    let name = stem.filter(|stem| stem != "tokenizer").or_else(folder);
    Ok((name.unwrap_or_else(|| "tokenizer".into()), text))
}

/// Reads a UTF-8 file. The error message names the problem without the path.
fn read_text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        // Reads one byte more than the limit, so that a file that is too large is recognized without its
        // metadata.
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("is larger than {MOST_BYTES} bytes; expected a tokenizer.json"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        format!("line {line}, byte {at}: is not UTF-8; expected UTF-8 text: a tokenizer.json")
    })?;
    // Some editors write a byte order mark, which is not valid JSON.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns the JSON array under `key`, or an empty slice.
fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        HuggingFace::new(json, "t/tokenizer.json").err().expect("refused").to_string()
    }

    #[test]
    fn invalid_tokenizer_is_refused_by_name() {
        for json in ["", "{}", "[]", "{\"model\":{}}", "{\"model\":{\"type\":\"Magic\"}}"] {
            assert!(error(json).starts_with("t/tokenizer.json: "), "{}", error(json));
        }
    }
}
