//! A taken or reserved name gets an underscore at its end, in the order of the schema, so the same schema always gives
//! the same Rust.

use std::collections::{HashMap, HashSet};

/// Words of Rust that cannot be identifiers, and names that generated code itself uses.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "union", "Self",
];

const METHODS: &[&str] = &[
    "advance",
    "clone",
    "entry",
    "fill",
    "finish",
    "from_raw",
    "is_at",
    "is_empty",
    "is_null",
    "needed_length_at",
    "new",
    "next",
    "parse",
    "parse_body",
    "raw",
    "skip_to",
];

/// Named without a path by generated code.
const TYPES: &[&str] = &[
    "AsRef",
    "Clone",
    "Copy",
    "Debug",
    "DecodeError",
    "Default",
    "EncodeError",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "FnOnce",
    "From",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Some",
    "String",
    "Tail",
    "ToOwned",
    "TryFrom",
    "Vec",
];

pub(crate) const SUFFIXES: &[&str] =
    &["", "Decoder", "Encoder", "GroupEncoder", "Field", "ProtobufEncoder", "ProtobufDecoder", "Stage"];

#[derive(Default)]
pub(crate) struct NameScope {
    taken: HashSet<String>,
    /// Underscores added at the last claim of a name. Fewer are not tried again: many names that become the same one
    /// would take quadratic time.
    underscores: HashMap<String, usize>,
}

impl NameScope {
    pub(crate) fn claim_type(&mut self, name: &str) -> String {
        let name = self.free(pascal(name), Self::is_taken);
        self.taken.extend(SUFFIXES.iter().map(|suffix| format!("{name}{suffix}")));
        name
    }

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        TYPES.contains(&name) || SUFFIXES.iter().any(|suffix| self.taken.contains(&format!("{name}{suffix}")))
    }

    pub(crate) fn claim_method(&mut self, name: &str) -> String {
        const WITH: [&str; 5] = ["", "_str", "_or_null", "_min", "_max"];
        let name = self.free(snake(name), |names, name| {
            is_reserved(name) || WITH.iter().any(|suffix| names.taken.contains(&format!("{name}{suffix}")))
        });
        self.taken.extend(WITH.iter().map(|suffix| format!("{name}{suffix}")));
        name
    }

    pub(crate) fn claim_choice(&mut self, name: &str) -> String {
        let name = self.free(snake(name), |names, name| {
            is_reserved(name) || names.taken.contains(name) || names.taken.contains(&with(name))
        });
        self.taken.extend([name.clone(), with(&name)]);
        name
    }

    pub(crate) fn claim_variant(&mut self, name: &str) -> String {
        let name = self.free(pascal(name), |names, name| {
            matches!(name, "Self" | "Unknown" | "NULL") || names.taken.contains(name)
        });
        self.taken.insert(name.clone());
        name
    }

    fn free(&mut self, name: String, is_taken: impl Fn(&Self, &str) -> bool) -> String {
        let mut count = self.underscores.get(&name).copied().unwrap_or(0);
        let mut candidate = format!("{name}{}", "_".repeat(count));
        while is_taken(self, &candidate) {
            candidate.push('_');
            count += 1;
        }
        self.underscores.insert(name, count);
        candidate
    }
}

fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || METHODS.contains(&name)
}

pub(crate) fn with(choice: &str) -> String {
    format!("with_{}", choice.trim_start_matches('_'))
}

/// Splits at underscores and where lower case turns to upper case.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1);
        let begins = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if *character == '_' || begins {
            words.push(String::new());
        }
        if *character != '_'
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(crate) fn snake(name: &str) -> String {
    let name = words(name).join("_");
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

pub(crate) fn pascal(name: &str) -> String {
    let words = words(name);
    let mut joined = String::new();
    for word in &words {
        // Two adjacent digits would read as one number.
        if joined.ends_with(|last: char| last.is_ascii_digit())
            && word.starts_with(|first: char| first.is_ascii_digit())
        {
            joined.push('_');
        }
        let (first, rest) = word.split_at(1);
        joined.push_str(&first.to_ascii_uppercase());
        joined.push_str(rest);
    }
    if joined.starts_with(|first: char| first.is_ascii_digit()) { format!("_{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_schema() {
        for (name, snake_case, pascal_case) in [
            ("fuelFigure", "fuel_figure", "FuelFigure"),
            ("HTTPServer", "http_server", "HttpServer"),
            ("cupHolderCount_t", "cup_holder_count_t", "CupHolderCountT"),
            ("T", "t", "T"),
            ("_1st", "_1st", "_1st"),
            ("a1_2", "a1_2", "A1_2"),
        ] {
            assert_eq!((snake(name), pascal(name)), (snake_case.into(), pascal_case.into()), "{name}");
        }
    }

    #[test]
    fn taken_names_get_an_underscore() {
        let mut names = NameScope::default();
        assert_eq!(names.claim_method("type"), "type_");
        assert_eq!(names.claim_method("fooBar"), "foo_bar");
        assert_eq!(names.claim_method("foo_bar"), "foo_bar_");
        assert_eq!(names.claim_method("parse"), "parse_");
        let mut names = NameScope::default();
        assert_eq!(names.claim_type("Option"), "Option_");
        assert_eq!(names.claim_type("Car"), "Car");
        assert_eq!(names.claim_type("CarDecoder"), "CarDecoder_");
    }
}
