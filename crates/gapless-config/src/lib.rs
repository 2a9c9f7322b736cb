//! Configuration files in TOML, as streams, clusters, supervisors and bridges read them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`refusals`] | [`ConfigErrors`]: all errors of a file |
//! | [`document`] | [`Document`]: a TOML text whose tables and values know their lines |
//! | [`key_lines`] | [`KeyLines`]: lines of the keys, for values that are refused after the text is dropped |
//! | [`error`] | [`ConfigError`]: a file that cannot be read, or a key with its line |
//! | `units` | sizes and durations with units |
//!
//! ```
//! use gapless_config::Document;
//! let document = Document::new("shop.toml", "[shop]\nname = \"corner\"\nopen = 7\n");
//! let mut file = document.tables()?;
//! let mut shop = file.table("shop")?;
//! assert_eq!(shop.get("name", |value| value.text().map(str::to_owned))?.as_deref(), Some("corner"));
//! let refused = shop.end().unwrap_err();
//! assert_eq!(refused.to_string(), "shop.toml:3: shop.open: unknown; name are allowed in [shop]");
//! # Ok::<(), gapless_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

pub mod document;
pub mod error;
pub mod key_lines;
pub mod refusals;
mod units;

pub use document::{Document, Table, Value};
pub use error::{ConfigError, read_file};
pub use key_lines::KeyLines;
pub use refusals::{ConfigErrors, Refusals};
