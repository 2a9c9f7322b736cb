//! SBE and protobuf have their own rules for changes, so only schema and message are compared; the header of an SBE
//! payload names the version of the schema that wrote it.

use super::shape::fingerprint;
use super::{Encoding, Message, MessageError};
use gapless_schema::{DecodeError, EncodeError, Protobuf, ProtobufObject, Sbe, SbeObject};

macro_rules! schema_message {
    ($wrapper:ident, $object:ident, $encoding:literal, $length:ident, $write:ident, $read:ident) => {
        impl<T: $object + Send + 'static> Message for $wrapper<T> {
            const TYPE_NAME: &'static str = T::NAME;
            const ENCODING: Encoding = Encoding::$wrapper;

            fn fingerprint() -> u64 {
                fingerprint(&Self::shape())
            }

            fn shape() -> String {
                format!("{} of {} schema {}, message {}", T::NAME, $encoding, T::SCHEMA_ID, T::TEMPLATE_ID)
            }

            fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
                encode_object::<Self>(into, self.0.$length(), |buffer| self.0.$write(buffer))
            }

            fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
                T::$read(bytes).map($wrapper).map_err(|error| bad_bytes::<Self>(error))
            }
        }
    };
}

schema_message!(Sbe, SbeObject, "SBE", sbe_length, to_sbe, from_sbe);
schema_message!(Protobuf, ProtobufObject, "protobuf", protobuf_length, to_protobuf, from_protobuf);

fn encode_object<M: Message>(
    into: &mut Vec<u8>,
    length: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), MessageError> {
    let start = into.len();
    into.resize(start + length, 0);
    let written = write(&mut into[start..]);
    into.truncate(start + written.unwrap_or(0));
    written.map(|_| ()).map_err(|error| MessageError::of::<M>(error.to_string()))
}

fn bad_bytes<M: Message>(error: DecodeError) -> MessageError {
    MessageError::of::<M>(error.to_string())
}
