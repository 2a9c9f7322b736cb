//! SBE message schemas to Rust: direct flyweights and indirect objects.
//!
//! | module | what lives there |
//! |---|---|
//! | [`message`] | the traits between generated code and a service: [`MessageSchema`], [`Message`], [`Direct`], [`Encode`]; [`Sbe`], [`Protobuf`] |
//! | `generate` | schema in, Rust and `.proto` out; behind the feature `generate` |
//! | [`protobuf`] | what generated protobuf writers and readers stand on |
//! | [`sbe`] | what generated SBE flyweights stand on |
//! | [`error`] | [`DecodeError`], [`EncodeError`] |
//!
//! For a message `Car` of a schema the generator writes
//!
//! | type | access | encoding | name in benchmarks |
//! |---|---|---|---|
//! | `CarEncoder`, `CarDecoder` | direct | SBE | `sbe.serial` |
//! | `Sbe<Car>` | indirect | SBE | `sbe.random` |
//! | `CarProtobufEncoder`, `CarProtobufDecoder` | direct | protobuf | `protobuf.serial` |
//! | `Protobuf<Car>` | indirect | protobuf | `protobuf.random` |
//!
//! and `Car` itself, a plain struct without lifetimes. The runtime does no I/O; direct access allocates nothing.

#![forbid(unsafe_code)]

pub mod error;
#[cfg(feature = "generate")]
pub mod generate;
pub mod message;
pub mod protobuf;
pub mod sbe;

pub use error::{DecodeError, EncodeError};
pub use gapless_wire::Encoding;
pub use message::{Direct, Encode, Message, MessageSchema, Protobuf, ProtobufObject, Sbe, SbeObject, schema_key};

/// Includes the Rust of a schema that a build script made with `gapless_schema::generate::build`.
///
/// The name is that of the schema file without its extension: `include_schema!("car")` brings in `pub mod car`.
#[macro_export]
macro_rules! include_schema {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
