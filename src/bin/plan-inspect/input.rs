//! Files and standard input → text and sessions. Gzip is recognised by its first bytes, whatever the file is called.

use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use context_window::SessionFile;
use std::{io::Read, path::Path};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most that is read, in bytes, packed or not: a session of this size is a mistake, or an attack.
const MOST: u64 = 2 << 30;

pub(crate) fn sessions(path: &Path) -> Result<SessionFile> {
    let _shown = Progress::spinner(&format!("reading {}", name(path)));
    let (name, bytes) = bytes(path)?;
    Ok(SessionFile::new(&name, bytes)?)
}

/// The name of a file, and its text.
pub(crate) fn text(path: &Path) -> Result<(String, String)> {
    let _shown = Progress::spinner(&format!("reading {}", name(path)));
    let (name, bytes) = bytes(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| anyhow::anyhow!("{name}: byte {} is not UTF-8", error.utf8_error().valid_up_to()))?;
    Ok((name, text))
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

fn bytes(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = name(path);
    let bytes = if path.as_os_str() == "-" {
        up_to_the_most(std::io::stdin().lock(), &name, "cannot be read")?
    } else {
        if path.is_dir() {
            bail!("{name} is a folder; expected a file");
        }
        let file = std::fs::File::open(path).with_context(|| format!("{name} cannot be read"))?;
        up_to_the_most(file, &name, "cannot be read")?
    };
    let bytes = if bytes.starts_with(&GZIP) {
        let unpacker = flate2::read::MultiGzDecoder::new(&bytes[..]);
        up_to_the_most(unpacker, &name, "is no whole gzip file")?
    } else {
        bytes
    };
    Ok((name, bytes))
}

fn up_to_the_most(from: impl Read, name: &str, otherwise: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes).with_context(|| format!("{name} {otherwise}"))?;
    if bytes.len() as u64 > MOST {
        bail!("{name} is larger than {MOST} bytes; expected sessions, split it with --id in mind");
    }
    Ok(bytes)
}
