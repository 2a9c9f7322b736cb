//! The messages of every schema in `gapless-schema/schemas`, which together use every feature of SBE. The build script
//! generates them, and they are compiled once, here, for all tests that need them: those of this crate and the fuzz
//! targets.
//!
//! | module | what lives there |
//! |---|---|
//! | [`samples`] | one object of each message with the values of its golden bytes |
//! | [`big_endian`], [`car`], [`extension_v0`], [`extension_v2`], [`names`], [`numbers`], [`truck`] | generated messages |

#![forbid(unsafe_code)]

pub mod samples;

gapless_schema::include_schema!("big-endian");
gapless_schema::include_schema!("car");
gapless_schema::include_schema!("extension-v0");
gapless_schema::include_schema!("extension-v2");
gapless_schema::include_schema!("names");
gapless_schema::include_schema!("numbers");
gapless_schema::include_schema!("truck");

/// `car.xml` has a golden file.
pub const CAR_SOURCES: [(&str, &str); 2] = [
    ("car.rs", include_str!(concat!(env!("OUT_DIR"), "/car.rs"))),
    ("car.proto", include_str!(concat!(env!("OUT_DIR"), "/car.proto"))),
];
