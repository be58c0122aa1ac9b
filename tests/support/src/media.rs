//! Small media files, written by hand.

pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let six = (bits >> (18 - 6 * at) & 63) as usize;
            text.push(if at <= group.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    text
}

/// Returns the beginning of a PNG of this size.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes
}

/// Returns a PDF with this number of pages, each with a stream of `filling` bytes.
pub fn pdf(pages: usize, filling: usize) -> Vec<u8> {
    let mut bytes =
        b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type /Pages /Kids [".to_vec();
    for page in 0..pages {
        bytes.extend(format!(" {} 0 R", 3 + 2 * page).bytes());
    }
    bytes.extend(format!(" ] /Count {pages} >>\nendobj\n").bytes());
    for page in 0..pages {
        let (own, content) = (3 + 2 * page, 4 + 2 * page);
        bytes.extend(
            format!("{own} 0 obj\n<< /Type /Page /Parent 2 0 R /Contents {content} 0 R >>\nendobj\n").bytes(),
        );
        bytes.extend(format!("{content} 0 obj\n<< /Length {filling} >>\nstream\n").bytes());
        bytes.extend((0..filling).map(|at| (at * 7 + page) as u8));
        bytes.extend(b"\nendstream\nendobj\n");
    }
    bytes.extend(b"trailer\n<< /Root 1 0 R >>\n%%EOF\n");
    bytes
}

/// Returns a WAV file whose header states `stated` bytes of data, with `actual` ones.
pub fn wav(bytes_a_second: u32, stated: u32, actual: usize) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0".to_vec();
    bytes.extend(bytes_a_second.to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(stated.to_le_bytes());
    bytes.resize(bytes.len() + actual, 0);
    bytes
}

/// Returns an MP4 file without sound or pictures.
pub fn mp4(brand: &[u8; 4], scale: u32, length: u32) -> Vec<u8> {
    let mut bytes = b"\0\0\0\x10ftyp".to_vec();
    bytes.extend(brand);
    bytes.extend(b"\0\0\0\0\0\0\0\x74moov\0\0\0\x6cmvhd\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(scale.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.resize(bytes.len() + 80, 0);
    bytes
}
