//! Names that models go by → names of a registry: `[names]` in `config/models.toml` (rule B7).

use serde::Deserialize;
use std::{
    borrow::Cow,
    collections::{BTreeSet, VecDeque},
};

/// Bytes of the longest name that the rules read. Paths of Vertex AI and ARNs take up to 250.
const LONGEST: usize = 512;

/// The most readings of one name. Names in use have fewer than 40.
const MOST: usize = 256;

/// Rules by which a name is read. In a pattern `#` stands for one digit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameRules {
    /// Texts that a provider, router or maker writes before the name.
    beginnings: Vec<String>,
    /// Beginnings before the base model of a fine-tuned one, which ends at the next colon.
    fine_tuned: Vec<String>,
    /// Resource types of ARNs that end with a name. Other ARNs hold ids.
    arns: Vec<String>,
    /// Patterns of endings that do not change the model's figures.
    endings: Vec<String>,
    /// Endings that set the context length.
    lengths: Vec<LengthEnding>,
    /// Beginnings that are spelled in two ways: as met, and as in the registry.
    spellings: Vec<(String, String)>,
    /// Patterns with a digit, the letter that stands for a decimal point, and a digit.
    points: Vec<String>,
    /// Endings that a tag of a local model leaves out: `llama3.1:8b` is instructed.
    untagged: Vec<String>,
}

/// An ending with a number: the context length in units of `times` tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LengthEnding {
    ending: String,
    times: u64,
}

/// A name that rules lead to from the name that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// In lower case.
    pub(super) name: String,
    /// The context length that an ending set.
    pub(super) context_len: Option<u64>,
    /// It had a tag or another ending of local models.
    tagged: bool,
}

impl NameRules {
    /// Returns the readings of a name, the one that needs the fewest rules first. A name that is too long has
    /// none.
    pub(super) fn readings(&self, name: &str) -> Vec<Reading> {
        if name.len() > LONGEST {
            return Vec::new();
        }
        let given = Reading { name: name.trim().to_ascii_lowercase(), context_len: None, tagged: false };
        let mut seen = BTreeSet::from([given.name.clone()]);
        let mut waiting = VecDeque::from([given]);
        let mut readings = Vec::new();
        while let Some(reading) = waiting.pop_front() {
            for next in self.steps(&reading) {
                if seen.len() < MOST && !next.name.is_empty() && seen.insert(next.name.clone()) {
                    waiting.push_back(next);
                }
            }
            readings.push(reading);
        }
        readings
    }

    /// Applies each rule once.
    fn steps(&self, reading: &Reading) -> Vec<Reading> {
        let name = reading.name.as_str();
        let named = |name: &str| Reading { name: name.into(), ..reading.clone() };
        if name.starts_with("arn:") || name.contains("/arn:") {
            let resource = |kind: &String| name.split_once(kind.as_str()).map(|(_, name)| named(name));
            return self.arns.iter().filter_map(resource).collect();
        }
        let mut steps = Vec::new();
        steps.extend(name.rsplit_once('/').map(|(_, bare)| named(bare)));
        let beginnings = self.beginnings.iter().filter_map(|text| name.strip_prefix(text.as_str()));
        steps.extend(beginnings.map(named));
        let tuned = self.fine_tuned.iter().filter_map(|text| name.strip_prefix(text.as_str()));
        steps.extend(tuned.map(|rest| named(rest.split(':').next().unwrap_or(rest))));
        for LengthEnding { ending, times } in &self.lengths {
            if let Some((rest, number)) = without_ending(name, ending) {
                let context_len = number.and_then(|number| number.checked_mul(*times));
                steps.push(Reading { context_len, ..named(rest) });
            }
        }
        let endings = self.endings.iter().filter_map(|ending| without_ending(name, ending));
        steps.extend(endings.map(|(rest, _)| named(rest)));
        for (met, known) in &self.spellings {
            steps.extend(name.strip_prefix(met.as_str()).map(|rest| named(&format!("{known}{rest}"))));
        }
        steps.extend(
            self.points.iter().filter_map(|pattern| with_points(name, pattern)).map(|name| named(&name)),
        );
        if let Some((model, tag)) =
            name.rsplit_once(':').filter(|(model, tag)| !model.is_empty() && !tag.is_empty())
        {
            steps.push(Reading { tagged: true, ..named(&format!("{model}-{tag}")) });
        }
        if reading.tagged {
            let whole = |ending: &String| Reading { tagged: false, ..named(&format!("{name}{ending}")) };
            steps.extend(self.untagged.iter().map(whole));
        }
        steps
    }
}

/// Returns the name without an ending of this pattern, and the number in the ending.
fn without_ending<'a>(name: &'a str, pattern: &str) -> Option<(&'a str, Option<u64>)> {
    let at = name.len().checked_sub(pattern.len()).filter(|at| *at > 0 && name.is_char_boundary(*at))?;
    let (rest, ending) = name.split_at(at);
    fits(ending, pattern).then(|| {
        let digits: String = ending.chars().filter(char::is_ascii_digit).collect();
        (rest, digits.parse().ok())
    })
}

/// Checks that a text is one of a pattern.
fn fits(text: &str, pattern: &str) -> bool {
    let same = |(byte, like): (u8, u8)| if like == b'#' { byte.is_ascii_digit() } else { byte == like };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(same)
}

/// Returns the name with decimal points at every place of a pattern such as `#p#`.
fn with_points(name: &str, pattern: &str) -> Option<String> {
    let mut text = name.as_bytes().to_vec();
    for at in 0..name.len().saturating_sub(pattern.len().saturating_sub(1)) {
        if name.get(at..at + pattern.len()).is_some_and(|part| fits(part, pattern)) {
            text[at + 1] = b'.';
        }
    }
    String::from_utf8(text).ok().filter(|text| text != name)
}

/// Returns the key of a name in an index: in lower case, with dashes for dots (`claude-sonnet-4.5`).
pub(super) fn dashed(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte == b'.' || byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().replace('.', "-").into()
    } else {
        name.into()
    }
}
