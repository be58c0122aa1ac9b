//! TOML text → [`Config`]. One file for now: presets, layers and origins join here.

use super::Config;
use crate::error::{Error, Repr};
use std::path::Path;

pub(super) fn file(path: &Path) -> Result<Config, Error> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| fault(&origin, &error.to_string()))?;
    parse(&text, &origin)
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Config, Error> {
    let config: Config = toml::from_str(text).map_err(|error| fault(origin, error.to_string().trim_end()))?;
    config.validate().map_err(|error| fault(origin, &error.to_string()))?;
    Ok(config)
}

fn fault(origin: &str, detail: &str) -> Error {
    Error::new(Repr::ConfigFile { origin: origin.into(), detail: detail.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_defaults_are_the_codes_defaults() {
        let shipped = parse(include_str!("../../config/default.toml"), "default.toml").unwrap();
        assert_eq!(shipped, Config::default());
    }

    #[test]
    fn unset_keys_of_the_shipped_file_are_keys() {
        let text = include_str!("../../config/default.toml").replace("\n#", "\n");
        let settings = text.lines().filter(|line| line.starts_with('[') || line.contains(" = "));
        let settings: Vec<&str> = settings.filter(|line| !line.starts_with(' ')).collect();
        let config = parse(&settings.join("\n"), "default.toml").unwrap();
        assert_eq!(config.model.default.safety_buffer, Some(1024));
        assert_eq!(config.sections.rag.cap, Some(40_000));
        assert_eq!(config.rag.max_source_tokens, Some(4000));
    }

    #[test]
    fn a_share_that_does_not_sum_is_an_error_with_the_keys() {
        let error = parse("[sections.rag]\nshare = 200\n", "mine.toml").unwrap_err();
        insta::assert_snapshot!(error, @"mine.toml: sections.system_pinned.share, sections.conversation.share, sections.rag.share: 150 + 550 + 200 = 900; expected per mille that sum to 1000 (rule B4)");
    }
}
