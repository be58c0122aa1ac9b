//! Short names for long ones: of folders and sessions, as names of files.

/// Returns the FNV-1a hash of some bytes. It is the same on every machine and in every version.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
