//! Passwords in what is said: an address of a database may be quoted wherever an argument is.

/// What ends a word: white space, and what quotes put around one.
const ENDS: [char; 8] = [' ', '\n', '\t', '\'', '"', '`', '<', '>'];

/// A text without the user and the password of any address in it.
pub(crate) fn masked(text: &str) -> String {
    text.split_inclusive(ENDS).map(word).collect()
}

fn word(word: &str) -> String {
    let masked = match (is_address(word), word.rfind('@')) {
        (true, Some(at)) => {
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

/// Also one with a typing error.
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
