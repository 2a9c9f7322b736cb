//! Messages of a schema, as used by generated code: SBE and protobuf from one XML file.
//!
//! A build script generates them, with this module as their runtime:
//!
//! ```ignore
//! // build.rs, with gapless-schema and its feature `generate` among the build dependencies
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let generator = gapless_schema::generate::Generator::new().runtime("::gapless::schema");
//!     Ok(generator.schema_file("schemas/car.xml").build()?)
//! }
//!
//! // src/main.rs
//! gapless::schema::include_schema!("car"); // pub mod car
//! ```
//!
//! A handler takes such a message as a view of its bytes (`CarDecoder`), or as a plain struct: [`Sbe`]`<Car>`,
//! [`Protobuf`]`<Car>`. `docs/guides/message-schemas.md` describes both, and the evolution of a schema.

pub use gapless_schema::{
    Decode, DecodeError, Direct, Encode, EncodeError, Encoding, MessageSchema, Protobuf, ProtobufObject, Sbe,
    SbeObject, include_schema, protobuf, sbe, schema_key,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/message-schemas.md")]
struct Guide;
