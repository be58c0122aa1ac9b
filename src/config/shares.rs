//! Shares of a whole: `"15%"` is a percentage, `0.15` is a fraction, and a whole number is in the unit of its
//! option. The decimal text is parsed directly, so no binary fraction causes rounding.

use crate::text::plain::short;
use std::{fmt::Write as _, ops::Range, sync::LazyLock};
use toml::de::{DeTable, DeValue};

/// The unit of an option that is a share, and its maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Thousandths of the whole.
    PerMille { maximum: u32 },
    /// Hundredths of the whole.
    Percent,
}

/// An invalid share: its key, the reason, and its position in the layer's text.
#[derive(Debug)]
pub(super) struct BadShare {
    pub(super) key: String,
    pub(super) detail: String,
    pub(super) span: Range<usize>,
}

/// The decimal text of every whole number up to the largest share, with a static lifetime for TOML values.
static NUMBERS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..=MAX_PER_MILLE).map(|number: u32| number.to_string()).collect());

/// The largest number that any share can have.
const MAX_PER_MILLE: u32 = 2_000;

/// Replaces each share written as text or with a decimal point by the whole number in its unit.
///
/// # Errors
///
/// The first share that is ambiguous, out of range, or more precise than its unit.
pub(super) fn replace_shares(table: &mut DeTable<'_>) -> Result<(), BadShare> {
    replace_in(table, &mut Vec::new())
}

fn replace_in(table: &mut DeTable<'_>, path: &mut Vec<String>) -> Result<(), BadShare> {
    for (name, value) in table.iter_mut() {
        path.push(name.get_ref().to_string());
        let span = value.span();
        let written = match value.get_ref() {
            DeValue::Float(number) => Some((number.as_str().to_owned(), false)),
            DeValue::String(text) => Some((text.to_string(), true)),
            _ => None,
        };
        if let DeValue::Table(inner) = value.get_mut() {
            replace_in(inner, path)?;
        } else if let (Some((text, quoted)), Some(unit)) = (written, unit(path)) {
            let number = unit.parse(&text, quoted);
            let number = number.map_err(|detail| BadShare { key: path.join("."), detail, span })?;
            *value.get_mut() = integer(number);
        }
        path.pop();
    }
    Ok(())
}

/// Returns a number as a TOML value.
fn integer(number: u32) -> DeValue<'static> {
    // An integer of the parser can only be created from text, which must outlive it.
    let parsed = NUMBERS.get(number as usize).and_then(|text| DeValue::parse(text).ok());
    parsed.map_or_else(|| DeValue::Integer(toml::de::DeInteger::default()), toml::Spanned::into_inner)
}

/// Returns the unit of an option that is a share, or `None` for other options.
fn unit(path: &[String]) -> Option<Unit> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["sections", _, "share"]
        | ["sections", "system_pinned", "pins_limit"]
        | ["conversation", "low_mark"]
        | ["rag", "question_limit" | "recall_share"] => Some(Unit::PerMille { maximum: 1_000 }),
        ["tokens", "calibration_per_mille"] => Some(Unit::PerMille { maximum: MAX_PER_MILLE }),
        ["usage", "approaching" | "at_limit"]
        | ["compaction", "percent" | "target"]
        | ["compaction", "retain", "capacity" | "active"]
        | ["compaction", "models", _, "percent"]
        | ["compaction", "models", _, "retain", "capacity" | "active"] => Some(Unit::Percent),
        _ => None,
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerMille { .. } => "per mille",
            Self::Percent => "per cent",
        }
    }

    /// Returns the maximum number of this unit.
    fn maximum(self) -> u32 {
        match self {
            Self::PerMille { maximum } => maximum,
            Self::Percent => 100,
        }
    }

    /// Returns the number of decimal places of a fraction that this unit can represent.
    fn places(self) -> usize {
        match self {
            Self::PerMille { .. } => 3,
            Self::Percent => 2,
        }
    }

    /// Parses a share in this unit, or returns the reason why the text is invalid.
    fn parse(self, written: &str, quoted: bool) -> Result<u32, String> {
        let quote = if quoted { "\"" } else { "" };
        let found = format!("{quote}{}{quote}", short(written));
        let fail = |reason: &str| Err(format!("{found} {reason}; expected {}", self.expected()));
        let percent = written.trim().strip_suffix('%');
        let (text, places) = match percent {
            Some(percent) => (percent.trim_end(), self.places() - 2),
            None => (written.trim(), self.places()),
        };
        if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return fail("is negative");
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) if !decimals.is_empty() => (whole, decimals),
            None if !text.is_empty() => (text, ""),
            _ => return fail("is not a share"),
        };
        if !whole.bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit()) {
            return fail("is not a share");
        }
        // `15` alone could mean per cent or per mille, so text and decimal numbers need a unit or a fraction.
        if percent.is_none() && decimals.is_empty() {
            return fail("has no unit");
        }
        // `0.150` is no more precise than `0.15`.
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > places {
            return fail(&format!(
                "is more precise than this option, which takes whole numbers of {}",
                self.name()
            ));
        }
        let mut digits = whole.to_owned();
        let _ = write!(digits, "{decimals:0<places$}");
        let digits = digits.trim_start_matches('0');
        let number = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        match number.filter(|number| *number <= self.maximum()) {
            Some(number) => Ok(number),
            None => fail(&format!("is more than {} %", self.max_percent())),
        }
    }

    /// Returns the maximum in per cent.
    fn max_percent(self) -> u32 {
        match self {
            Self::PerMille { maximum } => maximum / 10,
            Self::Percent => 100,
        }
    }

    fn expected(self) -> String {
        let (maximum, unit) = (self.maximum(), self.name());
        format!("{unit} as a whole number up to {maximum}, per cent as \"15%\", or a fraction such as 0.15")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_MILLE: Unit = Unit::PerMille { maximum: 1_000 };

    #[test]
    fn decimal_text_is_read_exactly() {
        for (text, per_mille) in [
            ("15%", 150),
            ("15 %", 150),
            (" 15.5 % ", 155),
            ("15.50%", 155),
            ("0%", 0),
            ("100%", 1_000),
            ("0.15", 150),
            ("0.150000000000000000000000000000", 150),
            ("1.0", 1_000),
            ("0.001", 1),
            (".3", 300),
            ("+0.3", 300),
        ] {
            assert_eq!(PER_MILLE.parse(text, true), Ok(per_mille), "{text}");
        }
        for (text, percent) in [("15%", 15), ("0.15", 15), ("1.00", 100), ("7.0 %", 7)] {
            assert_eq!(Unit::Percent.parse(text, true), Ok(percent), "{text}");
        }
        // Every per mille value, as a fraction and as a percentage.
        for number in 0..=1_000_u32 {
            let fraction = format!("{}.{:03}", number / 1_000, number % 1_000);
            let percent = format!("{}.{}%", number / 10, number % 10);
            assert_eq!(PER_MILLE.parse(&fraction, false), Ok(number), "{fraction}");
            assert_eq!(PER_MILLE.parse(&percent, true), Ok(number), "{percent}");
        }
    }

    #[test]
    fn invalid_shares_are_errors_with_a_reason() {
        for (unit, text, reason) in [
            (PER_MILLE, "15", "has no unit"),
            (PER_MILLE, "0.1505", "is more precise than this option"),
            (PER_MILLE, "0.15000000000000000000000001", "is more precise than this option"),
            (PER_MILLE, "15.05%", "is more precise than this option"),
            (Unit::Percent, "0.155", "is more precise than this option"),
            (Unit::Percent, "15.5%", "is more precise than this option"),
            (PER_MILLE, "101%", "is more than 100 %"),
            (PER_MILLE, "15.0", "is more than 100 %"),
            (PER_MILLE, "99999999999999999999999.5", "is more than 100 %"),
            (Unit::Percent, "1.5", "is more than 100 %"),
            (PER_MILLE, "-0.1", "is negative"),
            (PER_MILLE, "-15%", "is negative"),
            (PER_MILLE, "many", "is not a share"),
            (PER_MILLE, "", "is not a share"),
            (PER_MILLE, "%", "is not a share"),
            (PER_MILLE, "15.%", "is not a share"),
            (PER_MILLE, "1.5.2", "is not a share"),
            (PER_MILLE, "1e-1", "is not a share"),
            (PER_MILLE, "nan", "is not a share"),
            (PER_MILLE, "12,5%", "is not a share"),
        ] {
            let error = unit.parse(text, true).unwrap_err();
            assert!(
                error.starts_with(&format!("\"{text}\" {reason}")) && error.contains("; expected "),
                "{error}"
            );
        }
    }
}
