//! Failed calls in the words of the command line: text from peers is escaped and cut.

use crate::printable;
use gapless_rpc::{CallError, Refusal};
use serde_json::{Value, json};

const LINE_LENGTH_MAX: usize = 1 << 10;

/// `can_wait`: the command has `--wait`, and it was not given.
pub(crate) fn in_one_line(route: &str, error: &CallError, can_wait: bool) -> String {
    shown(&match error {
        CallError::NoRoute { reason, .. } if can_wait && reason.is_empty() => {
            format!("no instance serves the route {route}: start one, or wait for one with --wait SECONDS")
        }
        CallError::NoRoute { reason, .. } if reason.is_empty() => format!("no instance serves the route {route}"),
        CallError::Refused { refusal, .. } => {
            let payload = payload(refusal).map(|payload| format!("; payload: {payload}")).unwrap_or_default();
            format!("{error}{payload}")
        }
        error => error.to_string(),
    })
}

pub(crate) fn as_json(error: &CallError) -> Value {
    let mut object = json!({ "error": error.to_string(), "kind": error.kind() });
    if let CallError::Refused { refusal, .. } = error {
        object["code"] = refusal.code.into();
        if let Some(kind) = refusal.failed_call() {
            object["failed_call"] = kind.into();
        }
        if let Some(payload) = payload(refusal) {
            object["payload"] = payload;
        }
    }
    object
}

/// JSON as a value, text as a string, other bytes as hexadecimal digits.
fn payload(refusal: &Refusal) -> Option<Value> {
    let bytes = &*refusal.payload;
    let text = || {
        let text = str::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control));
        text.map_or_else(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect(), str::to_owned)
    };
    (!bytes.is_empty()).then(|| serde_json::from_slice(bytes).unwrap_or_else(|_| text().into()))
}

/// Escapes invisible characters, and cuts a long text, saying by how much.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, letter) in text.char_indices() {
        let before = shown.len();
        printable::push(&mut shown, letter);
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
    fn refusal_payload_is_shown() {
        let refused = |code, payload: &[u8]| {
            let refusal = Refusal { code, text: "no".to_owned(), payload: payload.to_vec() };
            CallError::Refused { route: "stock".to_owned(), refusal }
        };
        for (payload, shown, value) in [
            (&br#"{"left": 3}"#[..], r#"; payload: {"left":3}"#, json!({ "left": 3 })),
            (b"three", r#"; payload: "three""#, json!("three")),
            (&[3, 0, 0xff], r#"; payload: "0300ff""#, json!("0300ff")),
            (b"", "", Value::Null),
        ] {
            let error = refused(4, payload);
            assert!(in_one_line("stock", &error, false).ends_with(&format!("refused with code 4: no{shown}")));
            let object = as_json(&error);
            assert_eq!((&object["kind"], &object["code"], &object["payload"]), (&json!("refused"), &json!(4), &value));
        }
        assert_eq!(as_json(&refused(0xffff_ff05, b""))["failed_call"], "timed_out");
        assert_eq!(as_json(&CallError::Closed), json!({ "error": "the domain is closed", "kind": "closed" }));
    }

    #[test]
    fn foreign_text_is_escaped_and_cut() {
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
