//! Reading of files, standard input and stores. Gzip is recognised by its first bytes, regardless of the
//! file's name.

use crate::{
    progress::Progress,
    stored::{self, Stored},
};
use anyhow::{Context, Result, bail};
use context_window_formats::{ReadOptions, Session, SessionFile};
use context_window_report as report;
use flate2::bufread::MultiGzDecoder;
use serde_json::value::RawValue;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::Path,
};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The maximum unpacked size, in bytes, of an input file that is not a session.
const MAX_BYTES: u64 = 256 << 20;

/// The sessions of a file or a store.
#[derive(Debug)]
pub(crate) enum Sessions {
    File(Box<SessionFile>),
    Store(Stored),
}

impl Sessions {
    /// Loads the session with this id, or the only session if there is no id.
    pub(crate) fn session(&mut self, id: Option<&str>) -> Result<Session> {
        match self {
            Self::File(file) => Ok(file.session(id)?),
            Self::Store(store) => store.session(id),
        }
    }

    /// Returns the number of sessions.
    pub(crate) fn len(&mut self) -> Result<usize> {
        match self {
            Self::File(file) => Ok(file.len()),
            Self::Store(store) => Ok(store.summaries()?.len()),
        }
    }
}

/// Opens the sessions of a file or a store.
pub(crate) fn sessions(path: &Path, options: ReadOptions) -> Result<Sessions> {
    let _shown = Progress::spinner(&format!("reading {}", name(path)));
    match stored::address(path) {
        Some(address) => Stored::open(address).map(Sessions::Store),
        None => Ok(Sessions::File(Box::new(file(path, options)?))),
    }
}

/// Checks if a file is an SQLite database.
pub(crate) fn is_sqlite(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut head = Vec::new();
    // Only a regular file is read here: reading from a pipe would consume its contents.
    let file = if path.is_file() { File::open(path).ok() } else { None };
    file.is_some_and(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head).is_ok()) && head == MAGIC
}

/// Reads the sessions of a file.
pub(crate) fn file(path: &Path, options: ReadOptions) -> Result<SessionFile> {
    if is_sqlite(path) {
        bail!("{0} is an SQLite file; expected the address of a store: sqlite:{0}", path.display());
    }
    let (name, from, _) = open(path)?;
    Ok(SessionFile::from_reader_with_options(&name, from, options)?)
}

/// Returns the name and the text of a file.
pub(crate) fn text(path: &Path) -> Result<(String, String)> {
    let _shown = Progress::spinner(&format!("reading {}", name(path)));
    let (name, from, _) = open(path)?;
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is too large.
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} is larger than {} bytes uncompressed; expected less", report::grouped(MAX_BYTES));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| anyhow::anyhow!("{name}: byte {} is not UTF-8", error.utf8_error().valid_up_to()))?;
    Ok((name, text))
}

/// Iterates over the JSON values of a file, such as its lines. Only one value is in memory.
pub(crate) fn values(path: &Path) -> Result<impl Iterator<Item = Result<Box<RawValue>>> + use<>> {
    let (name, from, _) = open(path)?;
    let values = serde_json::Deserializer::from_reader(BufReader::new(from)).into_iter::<Box<RawValue>>();
    Ok(values.map(move |value| {
        value.map_err(|error| {
            let fault = if error.is_io() { "cannot be read" } else { "not JSON" };
            anyhow::Error::new(error).context(format!("{name}: {fault}"))
        })
    }))
}

/// Checks if a file is compressed with gzip.
pub(crate) fn is_packed(path: &Path) -> Result<bool> {
    Ok(open(path)?.2)
}

/// Returns the name of a file or store for messages. It contains no password.
pub(crate) fn name(path: &Path) -> String {
    match stored::address(path) {
        Some(address) => stored::name(address),
        None if path.as_os_str() == "-" => "standard input".into(),
        // The path can be an address of another kind of database, which may contain a password.
        None if ["://", "password="].iter().any(|part| path.to_string_lossy().contains(part)) => {
            "an address of an unknown form".into()
        }
        None => path.display().to_string(),
    }
}

/// Opens a file. Returns its name, a reader of its unpacked bytes, and true if it is compressed.
fn open(path: &Path) -> Result<(String, Box<dyn Read + Send>, bool)> {
    let name = name(path);
    let mut file: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        if path.is_dir() {
            bail!("{name} is a folder; expected a file");
        }
        Box::new(File::open(path).with_context(|| format!("{name} cannot be read"))?)
    };
    let mut head = Vec::new();
    let begun = file.by_ref().take(GZIP.len() as u64).read_to_end(&mut head);
    begun.with_context(|| format!("{name} cannot be read"))?;
    let packed = head == GZIP;
    // The bytes read for the check come first again.
    let whole = Cursor::new(head).chain(BufReader::new(file));
    let bytes: Box<dyn Read + Send> =
        if packed { Box::new(GzipReader(MultiGzDecoder::new(whole))) } else { Box::new(whole) };
    Ok((name, bytes, packed))
}

/// A reader of unpacked bytes. Its errors mention gzip.
struct GzipReader<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0
            .read(buffer)
            .map_err(|error| io::Error::new(error.kind(), format!("incomplete gzip file, {error}")))
    }
}
