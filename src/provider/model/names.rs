//! The conversion of names in use to names of a registry: `[names]` in `config/models.toml` (model names,
//! rule B7).

use serde::Deserialize;
use std::{
    borrow::Cow,
    collections::{BTreeSet, VecDeque},
};

/// The maximum length in bytes of a name that the rules read. Paths of Vertex AI and ARNs have up to 250.
const LONGEST: usize = 512;

/// The maximum number of readings of a name. Names in use have fewer than 40.
const MOST: usize = 256;

/// The rules by which a name is read. In a pattern, `#` means one digit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameRules {
    /// The prefixes that a provider, router or vendor adds to a name.
    beginnings: Vec<String>,
    /// The prefixes of fine-tuned models. The base model follows, up to the next colon.
    fine_tuned: Vec<String>,
    /// The resource types of ARNs that end with a name. Other ARNs contain ids.
    arns: Vec<String>,
    /// The patterns of suffixes that do not change the model's figures.
    endings: Vec<String>,
    /// The suffixes that set the context length.
    lengths: Vec<LengthEnding>,
    /// The prefixes with two spellings: the one in use, and the one in the registry.
    spellings: Vec<(String, String)>,
    /// The patterns of a digit, the letter in place of a decimal point, and a digit.
    points: Vec<String>,
    /// The suffixes that tags of local models leave out: `llama3.1:8b` is an instruct model.
    untagged: Vec<String>,
}

/// A suffix with a number: the context length in units of `times` tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LengthEnding {
    ending: String,
    times: u64,
}

/// A name that the rules derive from the given name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// The name in lower case.
    pub(super) name: String,
    /// The context length that a suffix set, in tokens.
    pub(super) context_len: Option<u64>,
    /// True if the name had a tag or another suffix of local models.
    tagged: bool,
}

impl NameRules {
    /// Returns the readings of a name in the order of the number of rules applied. A name that is too long
    /// has none.
    pub(super) fn readings(&self, name: &str) -> Vec<Reading> {
        if name.len() > LONGEST {
            return Vec::new();
        }
        let given = Reading { name: name.trim().to_ascii_lowercase(), context_len: None, tagged: false };
        let mut seen = BTreeSet::from([given.name.clone()]);
        let mut waiting = VecDeque::from([given]);
        let mut readings = Vec::new();
        // Breadth-first search: names with fewer rules come first. `seen` ends it, since rules can form
        // cycles.
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

    /// Returns the names that each rule derives in one step.
    fn steps(&self, reading: &Reading) -> Vec<Reading> {
        let name = reading.name.as_str();
        let named = |name: &str| Reading { name: name.into(), ..reading.clone() };
        // Other rules must not read an ARN: its account and region look like parts of a name.
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
                // A number that overflows sets no context length.
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

/// Returns the name without a suffix of this pattern, and the number in the suffix. Returns `None` if the
/// name has no such suffix.
fn without_ending<'a>(name: &'a str, pattern: &str) -> Option<(&'a str, Option<u64>)> {
    let at = name.len().checked_sub(pattern.len()).filter(|at| *at > 0 && name.is_char_boundary(*at))?;
    let (rest, ending) = name.split_at(at);
    fits(ending, pattern).then(|| {
        let digits: String = ending.chars().filter(char::is_ascii_digit).collect();
        (rest, digits.parse().ok())
    })
}

/// Returns true if a text matches a pattern.
fn fits(text: &str, pattern: &str) -> bool {
    let same = |(byte, like): (u8, u8)| if like == b'#' { byte.is_ascii_digit() } else { byte == like };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(same)
}

/// Returns the name with decimal points at every match of a pattern such as `#p#`, or `None` if there is
/// none.
fn with_points(name: &str, pattern: &str) -> Option<String> {
    let mut text = name.as_bytes().to_vec();
    for at in 0..name.len().saturating_sub(pattern.len().saturating_sub(1)) {
        if name.get(at..at + pattern.len()).is_some_and(|part| fits(part, pattern)) {
            // Overwritten in place: the letter and the point have one byte each.
            text[at + 1] = b'.';
        }
    }
    String::from_utf8(text).ok().filter(|text| text != name)
}

/// Returns the index key of a name: in lower case, with dashes for dots (`claude-sonnet-4.5`).
pub(super) fn dashed(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte == b'.' || byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().replace('.', "-").into()
    } else {
        name.into()
    }
}
