//! Fractions with a confidence interval.

use std::fmt;

/// A fraction of a number of independent cases, such as the questions that kept all their evidence.
///
/// ```
/// use context_window_eval::Share;
///
/// let share = Share::new(1, 21);
/// assert_eq!(share.to_string(), "4.8 % (0.8 to 22.7)");
/// assert_eq!(share.per_mille(), Some(48));
/// assert_eq!(Share::new(0, 0).to_string(), "-");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    /// Creates the share of `part` cases in `whole` cases.
    #[must_use]
    pub fn new(part: u64, whole: u64) -> Self {
        Self { part: part.min(whole), whole }
    }

    /// Returns the share in per mille, rounded to the nearest. Returns `None` if there is no case.
    #[must_use]
    pub fn per_mille(self) -> Option<u64> {
        per_mille(self.part, self.whole)
    }

    /// Returns the share as a whole number of per cent, or `-` if there is no case.
    #[must_use]
    pub fn rounded_percent(self) -> String {
        self.per_mille().map_or_else(|| "-".into(), |share| ((share + 5) / 10).to_string())
    }

    /// Returns the bounds of the 95 % confidence interval by Wilson (1927), in per mille. Returns `None` if
    /// there is no case.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^52")]
    #[expect(clippy::cast_sign_loss, reason = "the bounds are within 0 and 1000")]
    pub fn interval(self) -> Option<(u64, u64)> {
        // The quantile of the normal distribution for 95 %.
        const Z: f64 = 1.959_963_985;
        if self.whole == 0 {
            return None;
        }
        // Wilson's interval stays within 0 and 1 and is sound for few cases, as the usual one is not.
        let (cases, share) = (self.whole as f64, self.part as f64 / self.whole as f64);
        let scale = 1.0 + Z * Z / cases;
        let centre = share + Z * Z / (2.0 * cases);
        // Only additions, products, quotients and a root, which every machine rounds in the same way.
        let half = Z * (share * (1.0 - share) / cases + Z * Z / (4.0 * cases * cases)).sqrt();
        let bound = |value: f64| ((value / scale).clamp(0.0, 1.0) * 1000.0).round() as u64;
        Some((bound(centre - half), bound(centre + half)))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(share), Some((low, high))) = (self.per_mille(), self.interval()) else {
            return f.write_str("-");
        };
        write!(f, "{} % ({} to {})", percent(share), percent(low), percent(high))
    }
}

/// Returns a part in relation to a whole in per mille, rounded to the nearest. It may exceed 1,000. Returns
/// `None` if the whole is 0.
pub(crate) fn per_mille(part: u64, whole: u64) -> Option<u64> {
    // Twice the values, so that a half is rounded without a fraction.
    let twice = u128::from(part) * 2_000 + u128::from(whole);
    twice.checked_div(u128::from(whole) * 2).and_then(|rounded| rounded.try_into().ok())
}

/// Formats a value in per mille as per cent with one decimal.
pub(crate) fn percent(per_mille: u64) -> String {
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_published_tables() {
        // Newcombe (1998), table I, method 3.
        for ((part, whole), bounds) in
            [((81, 263), (255, 366)), ((15, 148), (62, 160)), ((0, 20), (0, 161)), ((1, 29), (6, 172))]
        {
            assert_eq!(Share::new(part, whole).interval(), Some(bounds), "{part} of {whole}");
        }
    }

    #[test]
    fn share_is_inside_its_interval() {
        for whole in 1..60 {
            for part in 0..=whole {
                let share = Share::new(part, whole);
                let (low, high) = share.interval().unwrap();
                let own = share.per_mille().unwrap();
                assert!(low <= own && own <= high && high <= 1000, "{part} of {whole}");
            }
        }
    }
}
