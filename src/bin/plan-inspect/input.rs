//! Files and standard input → sessions. Gzip is recognised by its first bytes, whatever the file is called.

use anyhow::{Context, Result};
use context_window::SessionFile;
use std::{io::Read, path::Path};

const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(crate) fn sessions(path: &Path) -> Result<SessionFile> {
    let (name, bytes) = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input cannot be read")?;
        ("standard input".to_owned(), bytes)
    } else {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("{name} cannot be read"))?;
        (name, bytes)
    };
    Ok(SessionFile::new(&name, unpacked(&name, bytes)?)?)
}

fn unpacked(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    let mut unpacker = flate2::read::MultiGzDecoder::new(&bytes[..]);
    unpacker.read_to_end(&mut text).with_context(|| format!("{name} is no whole gzip file"))?;
    Ok(text)
}
