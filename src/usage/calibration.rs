//! Token calibration: computes from usage reports how the provider's count relates to the local count (rule
//! N6).

use super::Usage;
use serde::Serialize;

/// The correction from a local count to the provider's count: `counted * per_mille / 1000 + offset`, rounded
/// up.
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest, usage::TokenCalibration};
///
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// // The provider counts 5 % more than the tokenizer here.
/// let request = PlanRequest::new(&log).with_calibration(TokenCalibration::per_mille(1_050));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenCalibration {
    /// The provider's tokens per 1000 locally counted tokens.
    pub per_mille: u32,
    /// Tokens that the provider counts in addition, such as tools or instructions unknown to the plan. May be
    /// negative.
    pub offset: i64,
    /// The number of reports that the calibration is computed from. 0 if the configuration or the request set
    /// it.
    pub reports: u32,
}

/// The local count of one prompt and the provider's report on it, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    /// The plan's own count, without any token calibration.
    pub(crate) counted: u64,
    /// The reported input, including cached tokens.
    pub(crate) reported: u64,
}

impl ReportedUsage {
    /// Combines a plan's count with the provider's report on it.
    pub(crate) fn new(counted: u64, usage: Usage) -> Self {
        let reported = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        Self { counted, reported }
    }

    /// Returns true if the report is plausible. It must be possible in a context window of `window` tokens.
    /// It must also be near the count, or exceed the count by about as much as the previous report did.
    pub(crate) fn is_believed(self, last: Option<Self>, window: u64) -> bool {
        let possible = self.reported > 0 && self.reported <= window && self.counted > 0;
        possible && (self.is_near() || last.is_some_and(|last| self.continues(last)))
    }

    /// Returns true for half to twice the count. On the texts measured in `docs/reference/counting.md`, two
    /// tokenizers never differ by more.
    fn is_near(self) -> bool {
        !self.is_too_low() && self.reported <= self.counted.saturating_mul(2)
    }

    /// Returns true for less than half of the count: the report leaves out a part of the input.
    pub(crate) fn is_too_low(self) -> bool {
        self.reported.saturating_mul(2) < self.counted
    }

    /// Returns true if both reports exceed their counts by about the same amount, so something unknown to the
    /// plan is sent with every prompt. Unknown content can only add tokens. A report far below the count
    /// leaves out a part, usually the tokens read from a cache.
    fn continues(self, last: Self) -> bool {
        if [self, last].iter().any(|report| report.reported <= report.counted) {
            return false;
        }
        let expected = wide(last.reported) + wide(self.counted) - wide(last.counted);
        let grown = (wide(self.counted) - wide(last.counted)).abs();
        // Tolerates an error as large as the growth between both prompts, or an eighth of the report.
        (wide(self.reported) - expected).abs() <= grown.max(wide(self.reported) / 8)
    }
}

/// Minimum difference between two counts, in tokens, for a meaningful ratio.
const APART: i128 = 500;

/// The result of calibration: the correction, and the last report if it is implausible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Calibrator {
    pub(crate) calibration: Option<TokenCalibration>,
    /// The last report if it is implausible.
    pub(crate) doubted: Option<ReportedUsage>,
}

impl Calibrator {
    /// Maximum number of newest reports used.
    pub(crate) const REPORTS: usize = 16;

    /// Computes the calibration from reports, oldest first. `window` is the context length in tokens. Uses
    /// integer arithmetic only, so that the same log gives the same calibration on every machine.
    pub(crate) fn learn(reports: &[ReportedUsage], window: u64) -> Self {
        let possible =
            |report: &ReportedUsage| report.reported > 0 && report.reported <= window && report.counted > 0;
        let mut believed = Vec::new();
        let (mut last, mut doubted) = (None, None);
        for report in &reports[reports.len().saturating_sub(Self::REPORTS)..] {
            doubted = Some(*report);
            // It stays the doubted report, but is no reference for the next one.
            if !possible(report) {
                continue;
            }
            // A second report with the same excess makes the first one plausible too, so both are used.
            let continues = last.is_some_and(|last| report.continues(last));
            if continues && believed.last() != last.as_ref() {
                believed.extend(last);
            }
            if continues || report.is_near() {
                believed.push(*report);
                doubted = None;
            }
            last = Some(*report);
        }
        Self { calibration: TokenCalibration::through(&believed), doubted }
    }
}

impl TokenCalibration {
    /// Creates a calibration of `per_mille` provider tokens per 1000 local tokens, without an offset. The
    /// value is clamped to 500 to 2000.
    #[must_use]
    pub fn per_mille(per_mille: u32) -> Self {
        Self { per_mille: per_mille.clamp(500, 2000), offset: 0, reports: 0 }
    }

    /// Returns the line through the newest report and the one with the most different count. Uses only the
    /// newest report if no other count is at least 500 tokens away.
    fn through(reports: &[ReportedUsage]) -> Option<Self> {
        let newest = *reports.last()?;
        let count = reports.len() as u32;
        let (counted, reported) = (wide(newest.counted), wide(newest.reported));
        let far = |report: &ReportedUsage| (wide(report.counted) - counted).abs();
        // Of two reports at the same distance, the older one is used.
        let farthest =
            reports.iter().rev().max_by_key(|report| far(report)).filter(|report| far(report) >= APART);
        let per_mille = match farthest {
            Some(other) => {
                let rise = (reported - wide(other.reported)) * 1000 / (counted - wide(other.counted));
                rise.clamp(500, 2000)
            }
            None if newest.is_near() => reported * 1000 / counted,
            None => 1000,
        };
        let offset = reported - rounded_up(counted * per_mille);
        // If a ratio alone explains the reports, the only offset left is the rounding error.
        let offset = if farthest.is_none() && newest.is_near() { offset.max(0) } else { offset };
        Some(Self {
            // Reports of absurd size give no calibration instead of an overflow.
            per_mille: u32::try_from(per_mille).ok()?,
            offset: i64::try_from(offset).ok()?,
            reports: count,
        })
    }

    /// Returns the provider's count for a local count.
    pub(crate) fn to_provider_tokens(self, counted: i128) -> i128 {
        rounded_up(counted * i128::from(self.per_mille)) + i128::from(self.offset)
    }

    /// Returns a part of the local count in the provider's tokens, without the constant offset.
    pub(crate) fn scaled(self, counted: u64) -> u64 {
        u64::try_from(rounded_up(wide(counted) * i128::from(self.per_mille))).unwrap_or(u64::MAX)
    }

    /// Returns the maximum local count for which the provider counts at most `budget`.
    pub(crate) fn within(self, budget: u64) -> i128 {
        ((wide(budget) - i128::from(self.offset)) * 1000).div_euclid(i128::from(self.per_mille.max(1)))
    }
}

/// Divides by 1000, rounding up.
fn rounded_up(thousandths: i128) -> i128 {
    -(-thousandths).div_euclid(1000)
}

fn wide(n: u64) -> i128 {
    i128::from(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn learn(reports: &[(u64, u64)], window: u64) -> Calibrator {
        let reports: Vec<ReportedUsage> = reports
            .iter()
            .map(|(counted, reported)| ReportedUsage { counted: *counted, reported: *reported })
            .collect();
        Calibrator::learn(&reports, window)
    }

    #[expect(clippy::unnecessary_wraps, reason = "what it is compared with is an Option")]
    fn line(per_mille: u32, offset: i64, reports: u32) -> Option<TokenCalibration> {
        Some(TokenCalibration { per_mille, offset, reports })
    }

    #[test]
    fn one_report_is_a_ratio_and_two_far_ones_are_a_line() {
        assert_eq!(learn(&[], 9_000).calibration, None);
        assert_eq!(learn(&[(1_000, 1_160)], 9_000).calibration, line(1_160, 0, 1));
        assert_eq!(learn(&[(1_000, 1_160), (1_500, 1_740)], 9_000).calibration, line(1_160, 0, 2));
        assert_eq!(learn(&[(1_000, 1_400), (3_000, 3_800)], 9_000).calibration, line(1_200, 200, 2));
        // After a cut of the window, the counts fall: the line is the same from the other side.
        assert_eq!(learn(&[(3_000, 3_800), (1_000, 1_400)], 9_000).calibration, line(1_200, 200, 2));
    }

    #[test]
    fn implausible_report_is_flagged_and_not_learned() {
        for (counted, reported) in [(1_000, 0), (1_000, 300_000), (1_000, 2_001), (1_000, 499), (0, 9)] {
            let calibrator = learn(&[(1_000, 1_100), (counted, reported)], 200_000);
            assert_eq!(calibrator.calibration, line(1_100, 0, 1), "{reported}");
            assert_eq!(calibrator.doubted, Some(ReportedUsage { counted, reported }));
        }
        assert_eq!(learn(&[(1_000, 0), (1_000, 1_100)], 200_000).doubted, None);
        // Near the count, but larger than the window.
        assert!(learn(&[(150_000, 250_000)], 200_000).doubted.is_some());
        assert!(learn(&[(150_000, 200_000)], 200_000).doubted.is_none());
    }

    #[test]
    fn repeated_reports_without_cached_tokens_are_not_learned() {
        // Reports of only the uncached tokens, and a constant figure for all prompts.
        let uncached: Vec<_> = (1..9).map(|n| (n * 4_000, 4_000)).collect();
        let made_up: Vec<_> = (1..9).map(|n| (n * 2_000, 900)).collect();
        for reports in [uncached, made_up] {
            let calibrator = learn(&reports[2..], 200_000);
            assert_eq!(calibrator.calibration, None);
            assert_eq!(calibrator.doubted.map(|last| last.reported), reports.last().map(|last| last.1));
        }
        // Above the count once and below it the next time: not a constant addition.
        assert_eq!(learn(&[(1_000, 2_100), (3_000, 2_200)], 9_000).calibration, line(733, 1, 1));
        assert!(learn(&[(1_001, 500)], 9_000).doubted.is_some());
    }

    #[test]
    fn unknown_constant_tokens_are_accepted_when_they_recur() {
        let first = learn(&[(500, 25_000)], 200_000);
        assert!(first.calibration.is_none() && first.doubted.is_some());
        let second = learn(&[(500, 25_000), (700, 25_230)], 200_000);
        assert_eq!((second.calibration, second.doubted), (line(1_000, 24_530, 2), None));
        let third = learn(&[(500, 25_000), (700, 25_230), (2_700, 27_400)], 200_000);
        assert_eq!(third.calibration, line(1_090, 24_457, 3));
    }

    proptest! {
        #[test]
        fn largest_fitting_count_fits_after_calibration(
            per_mille in 1u32..5_000, offset in -50_000i64..50_000, budget in 0u64..1_000_000,
        ) {
            let calibration = TokenCalibration { per_mille, offset, reports: 1 };
            let most = calibration.within(budget);
            prop_assert!(calibration.to_provider_tokens(most) <= i128::from(budget));
            prop_assert!(calibration.to_provider_tokens(most + 1) > i128::from(budget));
        }

        #[test]
        fn calibrator_survives_any_report(reports in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40), window: u64) {
            let calibrator = learn(&reports, window);
            if let Some(calibration) = calibrator.calibration {
                prop_assert!((500..=2_000).contains(&calibration.per_mille));
            }
        }
    }
}
