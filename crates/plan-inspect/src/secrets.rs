//! Masking of passwords in messages. Any message that quotes an argument can contain a database address.

/// The characters that end a word: white space and quotation marks.
const ENDS: [char; 8] = [' ', '\n', '\t', '\'', '"', '`', '<', '>'];

/// Replaces the user and password of every address in a text with `***`.
pub(crate) fn masked(text: &str) -> String {
    text.split_inclusive(ENDS).map(word).collect()
}

/// Masks a single word: the part before the last `@` of an address, and the value of `password=`.
fn word(word: &str) -> String {
    let masked = match (is_address(word), word.rfind('@')) {
        (true, Some(at)) => {
            // A mistyped address can lack a slash or the colon, and must not show its password either.
            let scheme = word.find("//").map(|at| at + 2).or(word.find([':', '/']).map(|at| at + 1));
            let start = scheme.filter(|start| *start < at).unwrap_or_default();
            format!("{}***{}", &word[..start], &word[at..])
        }
        _ => word.to_owned(),
    };
    let Some((before, value)) = masked.split_once("password=") else { return masked };
    let end = value.find(|c| c == '&' || ENDS.contains(&c)).unwrap_or(value.len());
    format!("{before}password=***{}", &value[end..])
}

/// Checks if a word is a database address, including one with a typing error.
fn is_address(word: &str) -> bool {
    let begins =
        |scheme: &str| word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    word.contains("://") || begins("postgres")
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn no_password_is_left() {
        for (text, expected) in [
            ("`postgres://ada:pw@host/d` is wrong", "`postgres://***@host/d` is wrong"),
            ("postgres:/ada:p@w@host/d", "postgres:***@host/d"),
            ("postgres//ada:pw@host/d: x", "postgres//***@host/d: x"),
            ("Postgresql://ada:a/b@host 'mysql://u:pw@h'", "Postgresql://***@host 'mysql://***@h'"),
            ("postgres://h/d?user=a&password=pw&x=1", "postgres://h/d?user=a&password=***&x=1"),
            ("host=h password=pw user=u", "host=h password=*** user=u"),
            ("mail ada@host, https://host/page", "mail ada@host, https://host/page"),
            ("", ""),
        ] {
            assert_eq!(masked(text), expected);
        }
    }
}
