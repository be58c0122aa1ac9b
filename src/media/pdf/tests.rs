use super::*;
use context_window_testing::media as samples;
use proptest::prelude::*;
use std::fmt::Write as _;

fn number(file: &[u8]) -> Option<u64> {
    count(file).map(|pages| pages.number)
}

/// Builds a file of these objects with a trailer.
fn file(objects: &[(u32, &str)]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    for (number, body) in objects {
        bytes.extend(format!("{number} 0 obj\n{body}\nendobj\n").bytes());
    }
    bytes.extend(b"trailer << /Root 1 0 R >>\n%%EOF");
    bytes
}

/// Builds an object stream of these objects.
fn object_stream(objects: &[(u32, &str)]) -> Vec<u8> {
    let (mut head, mut bodies) = (String::new(), String::new());
    for (number, body) in objects {
        let _ = write!(head, "{number} {} ", bodies.len());
        bodies.push_str(body);
        bodies.push(' ');
    }
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(format!("{head}{bodies}").as_bytes(), 6);
    let dictionary = format!(
        "<< /Type /ObjStm /N {} /First {} /Filter /FlateDecode /Length {} >>\nstream\n",
        objects.len(),
        head.len(),
        packed.len()
    );
    [dictionary.as_bytes(), &packed, b"\nendstream"].concat()
}

#[test]
fn pages_are_the_leaves_of_the_tree() {
    assert_eq!(count(&samples::pdf(40, 1_000)), Some(Pages { number: 40, is_whole: true }));
    let nested = file(&[
        (1, "<< /Type /Catalog /Pages 2 0 R >>"),
        (2, "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 3>>"),
        (3, "<</Type/Pages/Kids[5 0 R 6 0 R]/Count 2/Parent 2 0 R>>"),
        (4, "<</Type/Page/Parent 2 0 R/Contents[7 0 R]/Annots[<</Type/Annot>>]>>"),
        (5, "<</Parent 3 0 R /Type /Page /Title (a \\) >> endobj (b)) >>"),
        (6, "<</Type/Page % a comment >>\n/Parent 3 0 R>>"),
        // A page that was removed from the tree.
        (8, "<</Type/Page/Parent 2 0 R>>"),
    ]);
    assert_eq!(count(&nested), Some(Pages { number: 3, is_whole: true }));
}

#[test]
fn the_newest_object_of_a_number_holds() {
    let mut saved_again = samples::pdf(3, 10);
    saved_again.extend(b"\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\ntrailer <</Root 1 0 R>>");
    assert_eq!(number(&saved_again), Some(1));
}

#[test]
fn packed_objects_are_counted() {
    let packed = object_stream(&[
        (1, "<</Type/Catalog/Pages 2 0 R>>"),
        (2, "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>"),
        (3, "<</Type/Page/Parent 2 0 R>>"),
        (4, "<</Type/Page/Parent 2 0 R>>"),
    ]);
    let references = b"<</Type/XRef/Root 1 0 R/Size 9/Length 0>>\nstream\n\nendstream";
    let file =
        [b"%PDF-1.5\n7 0 obj\n", &packed[..], b"\nendobj\n8 0 obj\n", references, b"\nendobj"].concat();
    assert_eq!(count(&file), Some(Pages { number: 2, is_whole: true }));
}

#[test]
fn stream_that_looks_like_objects_contains_none() {
    let fake = "3 0 obj <</Type/Pages/Kids[4 0 R 4 0 R 4 0 R]/Count 3>> endobj";
    let stream = format!("<< /Length {} >>\nstream\n{fake}\nendstream", fake.len());
    let whole = file(&[
        (1, "<</Type/Catalog/Pages 2 0 R>>"),
        (2, "<</Type/Pages/Kids[3 0 R]/Count 1>>"),
        (3, "<</Type/Page>>"),
        (4, &stream),
    ]);
    assert_eq!(number(&whole), Some(1));
}

#[test]
fn damaged_page_trees_are_counted_by_their_readable_pages() {
    // The inner node is in a stream that cannot be unpacked, so the count of the root is used.
    let missing = file(&[
        (1, "<</Type/Catalog/Pages 2 0 R>>"),
        (2, "<</Type/Pages/Kids[3 0 R 9 0 R]/Count 70>>"),
        (3, "<</Type/Page>>"),
    ]);
    assert_eq!(count(&missing), Some(Pages { number: 70, is_whole: false }));
    let rootless = file(&[(3, "<</Type/Page>>"), (4, "<</Type/Page>>")]);
    assert_eq!(count(&rootless), Some(Pages { number: 2, is_whole: false }));
    assert_eq!(count(b"%PDF-1.4\nABCD"), None);
    assert_eq!(count(b""), None);
}

#[test]
fn a_tree_with_a_cycle_ends() {
    let cyclic = file(&[
        (1, "<</Type/Catalog/Pages 2 0 R>>"),
        (2, "<</Type/Pages/Kids[2 0 R 3 0 R 4 0 R]/Count 9>>"),
        (3, "<</Type/Pages/Kids[2 0 R 4 0 R]/Count 9>>"),
        (4, "<</Type/Page>>"),
    ]);
    assert_eq!(number(&cyclic), Some(2));
    // Each level names the next one twice, which gives 2^60 paths.
    let levels: Vec<(u32, String)> = (2..62)
        .map(|at| (at, format!("<</Type/Pages/Kids[{0} 0 R {0} 0 R]/Count 1>>", at + 1)))
        .chain([(1, "<</Type/Catalog/Pages 2 0 R>>".into()), (62, "<</Type/Page>>".into())])
        .collect();
    let levels: Vec<(u32, &str)> = levels.iter().map(|(number, body)| (*number, body.as_str())).collect();
    assert_eq!(number(&file(&levels)), Some(2));
}

/// Files for which a naive parser needs quadratic time. The number of examined bytes stays linear.
#[test]
fn the_work_on_a_hostile_file_is_linear() {
    let repeated = |piece: &str, times: usize| piece.repeat(times).into_bytes();
    let cases = [
        repeated("1 0 obj <<", 20_000),
        repeated("1 0 obj <</Type/Page>> stream\n", 10_000),
        repeated("1 0 obj <</A(", 20_000),
        repeated("1 0 obj <</A<", 20_000),
        repeated("1 0 obj %", 20_000),
        repeated("1 0 obj [[[[", 20_000),
        repeated("1 0 obj <</Length 5>> stream", 10_000),
        repeated("trailer <<", 20_000),
        repeated("1 0 obj <</Type/Catalog/Pages 1 0 R>>\n", 5_000),
        repeated("((((((((((", 20_000),
    ];
    for (nth, case) in cases.iter().enumerate() {
        let mut work = Work::new(STEPS_A_BYTE * (case.len() as u64 + 1_024));
        let mut objects = Objects { unpacked: UNPACKED, ..Objects::default() };
        let _ = objects.scan(case, &mut work);
        let touched = lexer::touched();
        assert!(touched <= 12 * case.len() as u64 + 65_536, "case {nth}: {touched} of {}", case.len());
    }
}

#[test]
fn a_bomb_is_not_unpacked_beyond_the_bound() {
    let zeros = miniz_oxide::deflate::compress_to_vec_zlib(&vec![b' '; UNPACKED + 1], 9);
    let dictionary =
        format!("<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length {}>>\nstream\n", zeros.len());
    let bomb = [b"7 0 obj\n", dictionary.as_bytes(), &zeros, b"\nendstream endobj\n"].concat();
    let bombs = [b"%PDF-1.5\n".to_vec(), bomb.repeat(20), samples::pdf(3, 10)].concat();
    let mut work = Work::new(u64::MAX);
    let mut objects = Objects { unpacked: UNPACKED, ..Objects::default() };
    objects.scan(&bombs, &mut work).unwrap();
    assert_eq!(number(&bombs), Some(3));
}

proptest! {
    #[test]
    fn pdf_reader_survives_any_damage(
        pages in 1usize..9, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = samples::pdf(pages, 40);
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len() + 1));
        let counted = count(&file);
        prop_assert!(counted.is_none_or(|pages| pages.number > 0));
    }
}
