//! A route's name is one word in a shell and never an option, and stays inside its directory when used as a path: 1 to
//! 128 bytes in parts separated by `/`, of letters, digits, `.`, `-` and `_`. A part begins with a letter, a digit or
//! `_`. Names that begin with a `.` are reserved for the library itself.

/// Longest name, bytes.
pub const ROUTE_NAME_LENGTH_MAX: usize = 128;

/// The library's own routes are shown only on request.
pub const HIDDEN_PREFIX: char = '.';

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteNameError {
    #[error(
        "{name:?} is no route's name: at most {ROUTE_NAME_LENGTH_MAX} letters, digits, \".\", \"-\" and \"_\" are expected, in parts \
         with \"/\" between them, each beginning with a letter, a digit or \"_\""
    )]
    NoName {
        /// The name, truncated if it is too long.
        name: String,
    },
    /// Choose another name.
    #[error("route: names that begin with {HIDDEN_PREFIX:?} are reserved for the library, found {name:?}")]
    Hidden { name: String },
}

/// Checks a name with or without the reserved `.` prefix.
///
/// # Errors
/// [`RouteNameError::NoName`].
pub fn check(name: &str) -> Result<(), RouteNameError> {
    let is_short = name.len() <= ROUTE_NAME_LENGTH_MAX;
    if is_short && is_name(name.strip_prefix(HIDDEN_PREFIX).unwrap_or(name)) { Ok(()) } else { Err(not_a_name(name)) }
}

/// Checks a name without the reserved prefix.
///
/// # Errors
/// [`RouteNameError`].
pub fn check_own(name: &str) -> Result<(), RouteNameError> {
    check(name)?;
    if name.starts_with(HIDDEN_PREFIX) {
        return Err(RouteNameError::Hidden { name: name.to_owned() });
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_part = |part: &[u8]| {
        part.first().is_some_and(is_first) && part.iter().all(|byte| is_first(byte) || b".-".contains(byte))
    };
    name.as_bytes().split(|byte| *byte == b'/').all(is_part)
}

fn not_a_name(name: &str) -> RouteNameError {
    const SHOWN_MAX: usize = 64;
    let shown = match name.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) if name.len() > ROUTE_NAME_LENGTH_MAX => format!("{}… ({} bytes)", &name[..end], name.len()),
        _ => name.to_owned(),
    };
    RouteNameError::NoName { name: shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_shells_and_paths() {
        let long = "x".repeat(ROUTE_NAME_LENGTH_MAX);
        for name in ["a", "7", "_", "double", "calculator/add", "deep/er.route-1", "a..b", "v2/_x/A-", &long] {
            assert!(check(name).is_ok() && check_own(name).is_ok(), "{name}");
        }
        assert!(check(".notices/12.ab/main").is_ok());
        let long = "x".repeat(ROUTE_NAME_LENGTH_MAX + 1);
        let others =
            ["", "-", "--wait", ".", "..", "../x", "a/../b", "a/.b", "a/-b", "/", "/a", "a/", "a//b", ".-", "..a"];
        let more = [" ", "a b", "a\n", "a\0", "\u{1b}[2J", "größe", "a\\b", "a:b", "a*", "@a", &long];
        for name in others.into_iter().chain(more) {
            assert!(matches!(check(name), Err(RouteNameError::NoName { .. })), "{name:?}");
            assert!(matches!(check_own(name), Err(RouteNameError::NoName { .. })), "{name:?}");
        }
        assert!(check_own(".notices/12.ab/main").is_err(), "reserved for the library");
    }

    #[test]
    fn error_truncates_a_long_name() {
        let error = check(&"ä".repeat(100_000)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("\"{}… (200000 bytes)\" is no route's name", "ä".repeat(64))), "{error}");
        assert!(check("a\u{1b}b").unwrap_err().to_string().starts_with(r#""a\u{1b}b" is no"#));
    }
}
