//! How a call ended that has no reply, in the words of the command line: what others say is escaped and cut, and what helps is named
//! by this program's options.

use gapless_rpc::CallError;

/// Bytes of a line at most that others have a part in.
const LINE_LENGTH_MAX: usize = 1 << 10;

/// Why a call of `route` has no reply. `can_wait`: the command has `--wait`, and it was not given.
pub(crate) fn in_one_line(route: &str, error: &CallError, can_wait: bool) -> String {
    shown(&match error {
        CallError::NoRoute { .. } if can_wait => {
            format!("no copy serves the route {route}: start one, or wait for one with --wait SECONDS")
        }
        CallError::NoRoute { .. } => format!("no copy serves the route {route}"),
        CallError::Refused(refusal) => format!("the call of {route} was {refusal}"),
        error => error.to_string(),
    })
}

/// A text that others have a part in: what is not seen is escaped, and what is long is cut, with how much.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, letter) in text.char_indices() {
        let before = shown.len();
        let is_plain = matches!(letter, ' '..='~') || letter.escape_debug().len() == 1;
        if is_plain {
            shown.push(letter)
        } else {
            shown.extend(letter.escape_debug())
        }
        if shown.len() > LINE_LENGTH_MAX {
            shown.truncate(before);
            shown.push_str(&format!(" … and {} bytes more", text.len() - at));
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_escaped_and_cut() {
        assert_eq!(shown("it's \"größe\" \\ 5 €"), "it's \"größe\" \\ 5 €", "what is seen stays as it is");
        assert_eq!(shown("a\0b\r\n\u{1b}[2J\u{202e}"), "a\\0b\\r\\n\\u{1b}[2J\\u{202e}");
        assert_eq!(shown(&"x".repeat(LINE_LENGTH_MAX)), "x".repeat(LINE_LENGTH_MAX));
        for letter in ['x', 'ä', '\0', '\u{202e}'] {
            let long = shown(&letter.to_string().repeat(100_000));
            let (kept, told) = long.split_once(" … and ").unwrap_or_default();
            assert!((1_000..=LINE_LENGTH_MAX).contains(&kept.len()), "{} bytes", kept.len());
            let per_letter = letter.escape_debug().map(char::len_utf8).sum::<usize>();
            let cut = letter.len_utf8() * (100_000 - kept.len() / per_letter);
            assert_eq!(told, format!("{cut} bytes more"));
        }
    }
}
