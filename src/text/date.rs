//! Dates of documents as text.

/// Returns the day of a time in seconds since 1970 (UTC), such as `2026-11-27`.
#[must_use]
pub fn as_day(seconds: i64) -> String {
    // Days since 1 March of year 0, in cycles of 400 years (Howard Hinnant, "chrono-compatible low-level date
    // algorithms").
    let days = seconds.div_euclid(86_400) + 719_468;
    let (cycle, of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_years = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * of_years + of_years / 4 - of_years / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = of_years + cycle * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
