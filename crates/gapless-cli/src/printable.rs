//! [`escaped`]: makes foreign text safe for a terminal: it cannot move the cursor, begin a line, or turn the direction
//! of text next to it.

/// Excludes controls, zero-width characters, and those that change the direction of a line.
pub(crate) fn is_plain(letter: char) -> bool {
    matches!(letter, ' '..='~') || letter.escape_debug().len() == 1
}

/// Writes invisible characters like Rust: `\u{1b}`, `\n`.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|letter| push(&mut shown, letter));
    shown
}

pub(crate) fn push(shown: &mut String, letter: char) {
    if is_plain(letter) { shown.push(letter) } else { shown.extend(letter.escape_debug()) }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(escaped("it's \"größe\" \\ 5 €"), "it's \"größe\" \\ 5 €", "what is seen stays as it is");
        assert_eq!(escaped("a\u{1b}[31m\nb"), r"a\u{1b}[31m\nb");
        for turning in ['\u{202e}', '\u{200f}', '\u{2066}', '\u{2069}', '\u{9b}', '\u{200b}'] {
            assert_eq!(escaped(&turning.to_string()), format!("\\u{{{:x}}}", u32::from(turning)));
        }
    }
}
