//! Times in files: a text, or the seconds and nanoseconds of serde's `SystemTime`.

use serde::{Deserialize, Deserializer, Serialize};

/// A time as a text.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Timestamp(String);

impl Timestamp {
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl From<String> for Timestamp {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a time: a string, or {\"secs_since_epoch\", \"nanos_since_epoch\"} with fewer than 1,000,000,000 nanoseconds"
)]
enum Wire {
    Text(String),
    SinceEpoch { secs_since_epoch: u64, nanos_since_epoch: Nanoseconds },
}

#[derive(Deserialize)]
#[serde(try_from = "u32")]
struct Nanoseconds(u32);

impl TryFrom<u32> for Nanoseconds {
    type Error = &'static str;

    fn try_from(nanoseconds: u32) -> Result<Self, &'static str> {
        if nanoseconds < 1_000_000_000 { Ok(Self(nanoseconds)) } else { Err("expected less than a second") }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Wire::deserialize(deserializer)? {
            Wire::Text(text) => text,
            Wire::SinceEpoch { secs_since_epoch, nanos_since_epoch: Nanoseconds(nanoseconds) } => {
                utc(secs_since_epoch, nanoseconds)
            }
        }))
    }
}

/// Formats a time in UTC such as `2026-11-22T09:30:00Z`, with the fraction of a second if it is not 0.
fn utc(seconds: u64, nanoseconds: u32) -> String {
    const DAY: u64 = 86_400;
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3_600, seconds % 3_600 / 60, seconds % 60);
    let fraction = format!(".{nanoseconds:09}");
    let fraction = if nanoseconds == 0 { "" } else { fraction.trim_end_matches('0') };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Converts days since 1970-01-01 to year, month and day of the Gregorian calendar.
fn date(mut days: u64) -> (u64, usize, u64) {
    // The calendar repeats every 400 years, so the loop below runs at most 400 times for any input.
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970 + 400 * (days / DAYS_OF_400_YEARS);
    days %= DAYS_OF_400_YEARS;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected dates come from `date --utc --date=@SECONDS`.
    #[test]
    fn seconds_convert_to_calendar_dates() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (951_782_400, 0, "2000-02-29T00:00:00Z"),
            (951_868_799, 999_999_999, "2000-02-29T23:59:59.999999999Z"),
            (1_709_164_800, 500_000_000, "2024-02-29T00:00:00.5Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00Z"),
            (u64::MAX, 0, "584554051223-11-09T07:00:15Z"),
        ] {
            assert_eq!(utc(seconds, nanoseconds), text);
        }
    }
}
