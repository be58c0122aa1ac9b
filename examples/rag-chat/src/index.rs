//! The index of a folder on disk: its files, and a search for the best chunks for a question (BM25).

use crate::chunks;
use crate::documents::{self, Stamp, Unreadable};
use crate::private;
use anyhow::{Context, Result, anyhow, ensure};
use context_window::{RagItem, RetrievedItems};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tantivy::collector::TopDocs;
use tantivy::query::*;
use tantivy::schema::*;
use tantivy::tokenizer::*;
use tantivy::{DocAddress, IndexReader, TantivyDocument, TantivyError, Term};

/// Increased when chunks or fields change: an index of another version is built again.
const VERSION: u32 = 2;
/// Memory for unwritten data, in bytes.
const MEMORY: usize = 50_000_000;
/// Weight of a word in the previous question relative to one in the current question.
const BEFORE: f32 = 0.25;

/// The files of an index, stored with it so that both change together.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    version: u32,
    files: BTreeMap<String, Indexed>,
}

/// A file with its number of chunks, and the error if it could not be read.
#[derive(Debug, Serialize, Deserialize)]
struct Indexed {
    stamp: Stamp,
    chunks: usize,
    error: Option<String>,
}

/// The result of [`Index::refresh`].
#[derive(Debug, Default)]
pub struct Refreshed {
    pub files: usize,
    pub chunks: usize,
    /// Number of files read because they were new or changed.
    pub read: usize,
    /// Number of removed files.
    pub gone: usize,
    pub unreadable: Unreadable,
    /// The reason for building the whole index again.
    pub rebuilt: Option<String>,
    /// True if another chat is indexing the same folder, so that nothing was changed.
    pub is_busy: bool,
}

/// The index of one folder.
pub struct Index {
    folder: PathBuf,
    /// The folder of the index itself.
    place: PathBuf,
    index: tantivy::Index,
    reader: IndexReader,
    rebuilt: Option<String>,
}

impl Index {
    /// Opens the index of a folder, which is stored at `place`. A damaged index or one of another version is
    /// built again.
    pub fn open(folder: &Path, place: &Path) -> Result<Self> {
        let at = || format!("{}: the index cannot be written there", place.display());
        place.parent().map_or(Ok(()), private::create_folder).with_context(at)?;
        // If two chats start together, the second one checks after the first is done, which may replace the
        // folder.
        let _lock = private::lock(&place.with_extension("lock")).with_context(at)?;
        private::create_folder(place).with_context(at)?;
        let is_new = !place.join("meta.json").exists();
        let (index, rebuilt) = match whole(place) {
            Ok(index) => (index, None),
            Err(why) => {
                fs::remove_dir_all(place).with_context(at)?;
                private::create_folder(place).with_context(at)?;
                let index = tantivy::Index::create_in_dir(place, schema()).with_context(at)?;
                (index, (!is_new).then(|| why.to_string()))
            }
        };
        index.tokenizers().register("words", analyzer());
        let reader = index.reader()?;
        private::restrict_files(place).with_context(at)?;
        Ok(Self { folder: folder.into(), place: place.into(), reader, index, rebuilt })
    }

    /// Reads new and changed files of the folder and removes deleted ones from the index. `progress` gets the
    /// numbers of finished files and of files to read.
    pub fn refresh(&mut self, mut progress: impl FnMut(usize, usize)) -> Result<Refreshed> {
        let mut before = contents(&self.index)?.files;
        let (listed, unreadable) = documents::list(&self.folder);
        let mut done = Refreshed { unreadable, rebuilt: self.rebuilt.take(), ..Refreshed::default() };
        let (mut files, mut changed) = (BTreeMap::new(), Vec::new());
        for (path, stamp) in listed {
            match before.remove(&path) {
                Some(same) if same.stamp == stamp => drop(files.insert(path, same)),
                // A file that cannot be opened is tried each time; one without valid text is tried when it
                // changes.
                _ => match fs::File::open(self.folder.join(&path)) {
                    Ok(_) => changed.push((path, stamp)),
                    Err(error) => done.unreadable.push((path, error.to_string())),
                },
            }
        }
        (done.read, done.gone) = (changed.len(), before.len());
        if done.read + done.gone > 0 {
            // One thread, so that chunks are in the order of their files on every machine.
            let mut writer = match self.index.writer_with_num_threads(1, MEMORY) {
                Err(TantivyError::LockFailure(..)) => {
                    return Ok(Refreshed { is_busy: true, read: 0, gone: 0, ..done });
                }
                writer => writer.context("the index cannot be changed")?,
            };
            for path in before.keys().chain(changed.iter().map(|(path, _)| path)) {
                writer.delete_term(Term::from_field_text(field("path"), path));
            }
            for (at, (path, stamp)) in changed.into_iter().enumerate() {
                progress(at, done.read);
                // An unreadable file is recorded, and tried again when it changes.
                let (text, error) = match documents::read(&self.folder, &path, stamp) {
                    Ok(text) => (text, None),
                    Err(error) => (String::new(), Some(error)),
                };
                let chunks = chunks::split_text(&path, &text);
                for (number, chunk) in (1u64..).zip(&chunks) {
                    writer.add_document(document(&path, number, chunk))?;
                }
                files.insert(path, Indexed { stamp, chunks: chunks.len(), error });
            }
            progress(done.read, done.read);
            let contents = Contents { version: VERSION, files };
            let mut commit = writer.prepare_commit()?;
            commit.set_payload(&serde_json::to_string(&contents)?);
            commit.commit().context("the index cannot be written")?;
            writer.wait_merging_threads()?;
            files = contents.files;
        }
        // Includes the entries that another chat wrote.
        self.reader.reload()?;
        private::restrict_files(&self.place).context("the files of the index cannot be made private")?;
        (done.files, done.chunks) = (files.len(), files.values().map(|file| file.chunks).sum());
        let unread = files.into_iter().filter_map(|(path, file)| Some((path, file.error?)));
        done.unreadable.extend(unread);
        Ok(done)
    }

    /// Returns the best chunks for a question as two lists, each of at most `most`: by their texts, and by
    /// the headings above them. The planner fuses the lists. Words of the previous question have less weight
    /// and help with follow-up questions.
    pub fn search(&self, question: &str, before: &str, most: usize) -> Result<RetrievedItems> {
        let by = |name| self.search_field(name, question, before, most);
        Ok(RetrievedItems::default().with_list("text", by("text")?).with_list("heading", by("heading")?))
    }

    fn search_field(&self, name: &str, question: &str, before: &str, most: usize) -> Result<Vec<RagItem>> {
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (text, weight) in [(question, 1.0), (before, BEFORE)] {
            for word in words(text) {
                let term = Term::from_field_text(field(name), &word);
                let term = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                parts.push((Occur::Should, Box::new(BoostQuery::new(term, weight))));
            }
        }
        if parts.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let searcher = self.reader.searcher();
        let best = searcher.search(&BooleanQuery::new(parts), &TopDocs::with_limit(most).order_by_score())?;
        let hit = |(score, at): (f32, DocAddress)| {
            let found: TantivyDocument = searcher.doc(at)?;
            let value = |name| found.get_first(field(name));
            let text = |name| value(name).and_then(|value| value.as_str()).unwrap_or_default();
            let number = value("number").and_then(|value| value.as_u64()).unwrap_or_default();
            let heading = Some(text("heading")).filter(|heading| !heading.is_empty());
            // Chunks below one heading are a source of their own: only these are joined.
            let source =
                heading.map_or(text("path").to_owned(), |heading| format!("{}, {heading}", text("path")));
            let id = format!("{}#{number}", text("path"));
            let score = f64::from((score * 100.0).round()) / 100.0;
            Ok(RagItem::new(id, score, text("text")).with_origin(source).with_position(number))
        };
        let mut hits = best.into_iter().map(hit).collect::<Result<Vec<RagItem>>>()?;
        // Equal scores are ordered by name, because the order in the index may vary.
        hits.sort_by(|a, b| b.score().total_cmp(&a.score()).then_with(|| a.id().cmp(b.id())));
        Ok(hits)
    }
}

/// Opens an index. Returns an error if it is damaged or of another version.
fn whole(place: &Path) -> Result<tantivy::Index> {
    let index = tantivy::Index::open_in_dir(place)?;
    if let Some(file) = index.validate_checksum()?.iter().min() {
        return Err(anyhow!("{} is damaged", file.display()));
    }
    ensure!(index.schema() == schema() && contents(&index)?.version == VERSION, "it has another version");
    Ok(index)
}

fn contents(index: &tantivy::Index) -> Result<Contents> {
    match index.load_metas()?.payload {
        Some(text) => serde_json::from_str(&text).context("its list of files is damaged"),
        None => Ok(Contents { version: VERSION, ..Contents::default() }),
    }
}

fn document(path: &str, number: u64, chunk: &chunks::Chunk<'_>) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    document.add_u64(field("number"), number);
    for (name, text) in [("path", path), ("heading", &chunk.heading), ("text", chunk.text)] {
        document.add_text(field(name), text);
    }
    document
}

fn schema() -> Schema {
    let words =
        TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(words).set_stored();
    let mut schema = Schema::builder();
    schema.add_text_field("path", STRING | STORED);
    schema.add_u64_field("number", STORED);
    schema.add_text_field("heading", text.clone());
    schema.add_text_field("text", text);
    schema.build()
}

fn field(name: &str) -> Field {
    schema().get_field(name).expect("a field of the schema")
}

/// Builds the analyzer for English: lower case, without words like "the", by stems. Words of other languages
/// stay unchanged.
fn analyzer() -> TextAnalyzer {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(40))
        .filter(LowerCaser);
    let stop = StopWordFilter::new(Language::English).expect("the feature `stopwords` brings them");
    words.filter(stop).filter(Stemmer::new(Language::English)).build()
}

/// Returns the words of a text as the index stores them, each once.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    analyzer().token_stream(text).process(&mut |token| {
        if !words.contains(&token.text) {
            words.push(token.text.clone());
        }
    });
    words
}
