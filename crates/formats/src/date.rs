//! Dates of documents: seconds since 1970, or a text in the form of ISO 8601.

use serde::{Deserialize, Deserializer, de::Visitor};
use std::fmt;

/// The accepted forms, for errors.
pub(crate) const EXPECTED: &str = "seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z";

const SECONDS_OF_A_DAY: i64 = 86_400;

/// A date in seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date(pub(crate) i64);

impl Date {
    /// Parses a calendar date, also with a time and an offset from UTC. Without an offset, the time is UTC. A
    /// fraction of a second is cut off. Returns `None` for any other text.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let is_day = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
        let days = is_day.then(|| days_before(year, month) + day - 1)?;
        let seconds = time.map_or(Some(0), seconds_of_time)?;
        Some(Self(days * SECONDS_OF_A_DAY + seconds))
    }

    /// Converts a number of seconds. A fraction is cut off. Returns `None` for a number outside of 64 bits.
    pub(crate) fn from_number(seconds: f64) -> Option<Self> {
        // 2^63 is exact as a float, and the largest float below it fits.
        const END: f64 = 9_223_372_036_854_775_808.0;
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        (-END..END).contains(&seconds).then(|| Self(seconds.floor() as i64))
    }
}

/// Returns the seconds between midnight UTC and a time of day, with its offset.
fn seconds_of_time(text: &str) -> Option<i64> {
    let (time, offset) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, "Z"),
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let [hour, minute, second] =
        numbers(whole, ':', [2, 2, 2]).or_else(|| numbers(&format!("{whole}:00"), ':', [2, 2, 2]))?;
    // A leap second has the number 60.
    if !is_fraction || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = match offset.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let separated = || numbers(offset, ':', [2, 2]);
            let hours = || numbers(&format!("{offset}:00"), ':', [2, 2]);
            let [hours, minutes] = separated().or_else(hours)?;
            let seconds = (hours < 24 && minutes < 60).then_some(hours * 3_600 + minutes * 60)?;
            if sign == "-" { -seconds } else { seconds }
        }
    };
    Some(hour * 3_600 + minute * 60 + second - offset)
}

/// Parses numbers with these numbers of digits between separators.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut pieces = text.split(separator);
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let piece = pieces.next()?;
        // `parse` alone would accept a sign.
        let is_number = piece.len() == digits && piece.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| piece.parse().ok())??;
    }
    pieces.next().is_none().then_some(found)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to the first of a month, negative for earlier years.
fn days_before(year: i64, month: i64) -> i64 {
    // The days before a year of the Gregorian calendar, counted from the year 0.
    let of_years = |year: i64| year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
    of_years(year) - of_years(1970) + (1..month).map(|month| days_of_month(year, month)).sum::<i64>()
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DateVisitor)
    }
}

struct DateVisitor;

impl Visitor<'_> for DateVisitor {
    type Value = Date;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Date, E> {
        Ok(Date(seconds))
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Date, E> {
        let found = || E::invalid_value(serde::de::Unexpected::Unsigned(seconds), &self);
        i64::try_from(seconds).map(Date).map_err(|_| found())
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Date, E> {
        let found = || E::invalid_value(serde::de::Unexpected::Float(seconds), &self);
        Date::from_number(seconds).ok_or_else(found)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Date, E> {
        Date::from_text(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected seconds come from `date --utc --date=TEXT +%s`.
    #[test]
    fn dates_convert_to_seconds() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2026-11-27", 1_795_737_600),
            ("2026-11-27T10:00:00Z", 1_795_773_600),
            ("2026-11-27T10:00:00", 1_795_773_600),
            ("2026-11-27 10:00", 1_795_773_600),
            ("2026-11-27T10:00:00.999Z", 1_795_773_600),
            ("2026-11-27T10:00:00+01:30", 1_795_768_200),
            ("2026-11-27T10:00:00-08", 1_795_802_400),
            ("2000-02-29", 951_782_400),
            ("2100-03-01", 4_107_542_400),
            ("1969-12-31T23:59:59Z", -1),
            ("1900-01-01", -2_208_988_800),
            ("0001-01-01", -62_135_596_800),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(Date::from_text(text), Some(Date(seconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "yesterday",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-29",
            "2026-00-10",
            "2026-1-2",
            "27.11.2026",
            "+026-11-27",
            "2026-11-27T",
            "2026-11-27T25:00:00Z",
            "2026-11-27T10:00:00ZZ",
            "2026-11-27T10:00:00+1",
            "2026-11-27T10:00:00+25:00",
            "2026-11-27T10:00:00.Z",
            "2026-11-27T10:00:00é",
            "1764237600",
        ] {
            assert_eq!(Date::from_text(text), None, "{text}");
        }
    }
}
