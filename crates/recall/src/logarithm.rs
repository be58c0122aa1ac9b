//! Logarithms in whole numbers, which are equal on every machine.

/// The fractional bits of a logarithm.
pub const FRACTION: u32 = 16;

/// Returns the logarithm of `part / whole` to the base 2, in fixed point. The quotient is at least 1.
#[must_use]
pub fn log2(part: u64, whole: u64) -> u64 {
    const ONE: u128 = 1 << 32;
    let mut value = (u128::from(part) << 32) / u128::from(whole).max(1);
    let mut log = 0;
    while value >= 2 * ONE {
        value >>= 1;
        log += 1 << FRACTION;
    }
    // Each squaring of a value from 1 to 2 gives the next binary digit of its logarithm.
    for bit in (0..FRACTION).rev() {
        value = (value * value) >> 32;
        if value >= 2 * ONE {
            value >>= 1;
            log += 1 << bit;
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    fn logarithms_are_exact_to_the_last_bits() {
        for (part, whole, log) in [(1, 1, 0.0), (8, 1, 3.0), (3, 2, 0.584_962_5), (1_000, 7, 7.158_429_4)] {
            let found = log2(part, whole) as f64 / 65_536.0;
            assert!((found - log).abs() < 0.000_1, "{part}/{whole}: {found}");
        }
    }
}
