//! Target for schema files: a schema, or an error with its place.

use crate::input::assert_says_something;
use gapless_schema::generate::{Generator, SchemaError};

/// Includes are looked up in a missing folder.
const NAME: &str = "no-such-folder/schema.xml";

pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines = 1 + text.matches('\n').count() as u32;
    let generator = Generator::new().schema_text(NAME, text.clone());
    match generator.generate() {
        Ok(generated) => {
            assert!(generator.check().is_ok_and(|summary| summary == generated.summary));
            assert!(generated.rust.contains(&format!("pub mod {}", generated.module)));
            assert!(!generated.proto.is_empty());
        }
        Err(error) => {
            assert_says_something(&error);
            match error {
                SchemaError::Invalid { file, line, column, .. } => {
                    assert!(line >= 1 && column >= 1, "{file}:{line}:{column}");
                    assert!(file != NAME || line <= lines, "line {line} of {lines}");
                }
                SchemaError::File { file, .. } | SchemaError::TooLarge { file, .. } => {
                    assert!(!file.as_os_str().is_empty());
                }
                other => panic!("another kind of error: {other}"),
            }
        }
    }
}
