//! Within a process the [`Arc`] moves; between processes its value is encoded.

use super::{Encoding, Message, MessageError, OlderVersion};
use std::sync::Arc;

impl<M: Message + Sync> Message for Arc<M> {
    const TYPE_NAME: &'static str = M::TYPE_NAME;
    const ENCODING: Encoding = M::ENCODING;
    const VERSION: u32 = M::VERSION;

    fn fingerprint() -> u64 {
        M::fingerprint()
    }

    fn shape() -> String {
        M::shape()
    }

    fn shape_as(version: u32) -> String {
        M::shape_as(version)
    }

    fn older() -> Vec<OlderVersion> {
        M::older()
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        M::encode(self, into)
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        M::decode(bytes).map(Self::new)
    }

    fn encode_as(&self, version: u32, into: &mut Vec<u8>) -> Result<(), MessageError> {
        M::encode_as(self, version, into)
    }

    fn decode_as(version: u32, bytes: &[u8]) -> Result<Self, MessageError> {
        M::decode_as(version, bytes).map(Self::new)
    }

    fn encoded(&self) -> Option<&[u8]> {
        M::encoded(self)
    }

    fn decode_owned(version: u32, bytes: &mut Vec<u8>) -> Result<Self, MessageError> {
        M::decode_owned(version, bytes).map(Self::new)
    }

    fn into_buffer(self) -> Vec<u8> {
        Self::into_inner(self).map_or_else(Vec::new, M::into_buffer)
    }

    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        M::to_json(self)
    }

    fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        M::from_json(text).map(Self::new)
    }
}
