//! Counting speed compared with other crates, interleaved in one run: MB/s, and as a multiple of tiktoken-rs.
//! Counts have to be equal. Run with `cargo bench -p context-window-benches --bench count`. Real texts are
//! included if `CONTEXT_WINDOW_DATA` names their folder.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

use context_window::TokenCounter;
use context_window_benches::texts;
use context_window_formats::SessionFile;
use std::{hint::black_box, io::Read, time::Instant};

type Count = Box<dyn Fn(&str) -> u64>;

/// Size of each corpus, in bytes.
const SIZE: usize = 1 << 20;

fn crates() -> Vec<(&'static str, Count)> {
    let ours = TokenCounter::o200k_base();
    let tiktoken = tiktoken_rs::o200k_base().unwrap();
    let bpe = bpe_openai::o200k_base();
    let toktok = toktok::Tokenizer::builtin("o200k_base").unwrap();
    vec![
        ("tiktoken-rs", Box::new(move |text: &str| tiktoken.count_ordinary(text) as u64) as Count),
        ("bpe-openai", Box::new(move |text: &str| bpe.count(text) as u64)),
        ("toktok-rs", Box::new(move |text: &str| toktok.count(text.as_bytes()) as u64)),
        ("this crate", Box::new(move |text: &str| ours.count(text).unwrap().tokens)),
    ]
}

/// Returns texts of the real sessions in files with this prefix.
fn real(prefix: &str) -> String {
    let Some(folder) = std::env::var_os("CONTEXT_WINDOW_DATA") else { return String::new() };
    let mut text = String::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)) {
        let packed = std::fs::read(path).unwrap();
        let mut json = Vec::new();
        flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut json).unwrap();
        let file = SessionFile::new(prefix, json).unwrap();
        for id in file.ids() {
            let Ok(session) = file.session(Some(&id)) else { continue };
            for message in session.log.messages() {
                text.push_str(message.text());
                text.push('\n');
            }
            session.rag.iter().for_each(|item| text.push_str(item.text()));
            if text.len() > SIZE {
                return cut(text);
            }
        }
    }
    cut(text)
}

fn cut(mut text: String) -> String {
    let end = (0..=SIZE.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text
}

fn corpora() -> Vec<(String, String)> {
    let real = [
        ("prose (real)", "long_longmemeval"),
        ("agent log (real)", "conv_miniswe"),
        ("code (real)", "rag_cookcode"),
        ("chat, English and Chinese (real)", "long_memorybank"),
    ];
    let mut all: Vec<(String, String)> =
        real.map(|(name, prefix)| (name.to_owned(), self::real(prefix))).into();
    all.retain(|(_, text)| !text.is_empty());
    // The synthetic texts repeat themselves, so they show the speed once their pieces are known.
    all.extend(texts::of_every_kind().into_iter().map(|(kind, text)| {
        let times = SIZE / text.len() + 1;
        (format!("{kind} (repeated)"), cut(text.repeat(times)))
    }));
    all.push(("mixed".to_owned(), cut(texts::thrown_together(7, SIZE))));
    all
}

fn endless() -> Vec<(&'static str, String)> {
    let random = |from: u32, span: u32| -> String {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from_u32(from + (seed >> 40) as u32 % span)
        };
        (0..SIZE / 3).filter_map(|_| next()).collect()
    };
    vec![
        ("one letter", "a".repeat(SIZE)),
        ("spaces", " ".repeat(SIZE)),
        ("newlines", "\n".repeat(SIZE)),
        ("punctuation", "!?.,;:-_(){}".repeat(SIZE / 12)),
        ("random letters", random(97, 26)),
        ("random Han", random(0x4e00, 20_000)),
        ("random Unicode", random(0xa0, 0xd000)),
    ]
}

fn seconds(work: impl FnOnce() -> u64) -> (f64, u64) {
    let started = Instant::now();
    let n = black_box(work());
    (started.elapsed().as_secs_f64(), n)
}

/// Returns the fastest of five runs.
fn best(work: impl Fn() -> u64) -> (f64, u64) {
    (0..5).map(|_| seconds(&work)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

fn main() {
    let only = std::env::args().skip(1).find(|word| !word.starts_with("--")).unwrap_or_default();
    // Loading time, which the first count of a process includes.
    let (ours, _) = seconds(|| TokenCounter::o200k_base().count("a rare wordlet, xqzjk").unwrap().tokens);
    let (bpe, _) = seconds(|| bpe_openai::o200k_base().count("a") as u64);
    println!("loading o200k_base: this crate {:.1} ms, then bpe-openai {:.1} ms", ours * 1e3, bpe * 1e3);

    let crates = crates();
    println!(
        "\n{:<36}{}",
        "MB/s (x tiktoken-rs)",
        crates.iter().map(|(name, _)| format!("{name:>22}")).collect::<String>()
    );
    for (kind, text) in corpora().iter().filter(|(kind, _)| kind.contains(&only)) {
        // The first pass of each crate over a new text, then the fastest of five.
        let cold: Vec<f64> = crates.iter().map(|(_, count)| seconds(|| count(text)).0).collect();
        let mut best = vec![f64::MAX; crates.len()];
        let mut counts = vec![0; crates.len()];
        for _ in 0..5 {
            for (at, (_, count)) in crates.iter().enumerate() {
                let (took, n) = seconds(|| count(text));
                best[at] = best[at].min(took);
                counts[at] = n;
            }
        }
        assert!(counts.iter().all(|n| *n == counts[0]), "{kind}: {counts:?}");
        for (pass, times) in [("cold", &cold), ("hot", &best)] {
            let cells: String = times
                .iter()
                .map(|took| format!("{:>13.0} ({:>5.2})", text.len() as f64 / took / 1e6, times[0] / took))
                .collect();
            println!("{:<36}{cells}", format!("{kind}, {pass}"));
        }
    }

    // tiktoken-rs panics on a megabyte of spaces, so it is left out here.
    println!("\n1 MB without a break, first pass, MB/s");
    for (kind, text) in endless().iter().filter(|(kind, _)| kind.contains(&only)) {
        let cells: String = crates[1..]
            .iter()
            .map(|(name, count)| {
                format!("{:>16} {:>6.0}", name, text.len() as f64 / seconds(|| count(text)).0 / 1e6)
            })
            .collect();
        println!("{kind:<20}{cells}");
    }

    // Early exit: a paste of 100 MB against 8,000 tokens, and a text whose size in bytes does not decide it.
    println!("\nover 8,000 tokens?");
    let counter = TokenCounter::o200k_base();
    let prose = texts::of_every_kind()[0].1.repeat(50_000);
    for (kind, text) in [
        ("100 MB of prose", &prose[..100 << 20]),
        ("1 MB of prose", &prose[..1_000_000]),
        ("1 MB of one letter", &"a".repeat(1_000_000)),
        ("1 MB of spaces", &" ".repeat(1_000_000)),
    ] {
        let (took, n) = best(|| counter.count_up_to(text, 8_000).unwrap().tokens);
        println!("{kind:<20}{:>12.1} us, {n}", took * 1e6);
    }
    println!("\nthe longest prefix of 8,000 tokens");
    for (kind, text) in
        [("100 MB of prose", &prose[..100 << 20]), ("100 MB of one letter", &"a".repeat(100 << 20))]
    {
        let (took, n) = best(|| counter.prefix_within(text, 8_000).unwrap().1.tokens);
        println!("{kind:<20}{:>12.1} us, {n}", took * 1e6);
    }
}
