//! A message keeps its meaning through every conversion: bytes to object to bytes, SBE to protobuf to SBE.

use crate::input::assert_says_something;
use gapless_schema::{Decode, DecodeError, EncodeError, Protobuf, ProtobufObject, Sbe, SbeObject};
use std::fmt::Debug;

pub use gapless_schema_tests::{big_endian, car, extension_v0, extension_v2, names, numbers, truck};

type Check = fn(&[u8]);

macro_rules! for_each_message {
    ($check:ident) => {
        &[
            $check::<big_endian::Big>,
            $check::<car::Car>,
            $check::<extension_v0::Note>,
            $check::<extension_v0::Order>,
            $check::<extension_v2::Late>,
            $check::<extension_v2::Note>,
            $check::<extension_v2::Order>,
            $check::<names::StringMessage>,
            $check::<names::TailMessage>,
            $check::<numbers::Arrays>,
            $check::<numbers::Choices>,
            $check::<numbers::Empty>,
            $check::<numbers::Keywords>,
            $check::<numbers::OptionMessage>,
            $check::<numbers::Padded>,
            $check::<numbers::Scalars>,
            $check::<truck::Truck>,
        ]
    };
}

const SBE: &[Check] = for_each_message!(check_sbe);
const PROTOBUF: &[Check] = for_each_message!(check_protobuf);

/// Feeds every message, because the header names the type.
pub fn sbe(bytes: &[u8]) {
    SBE.iter().for_each(|check| check(bytes));
}

/// The first byte selects the message, because the payload does not name it.
pub fn protobuf(bytes: &[u8]) {
    let Some((message, payload)) = bytes.split_first() else { return };
    PROTOBUF[usize::from(*message) % PROTOBUF.len()](payload);
}

fn check_sbe<T: SbeObject + ProtobufObject + Debug + 'static>(payload: &[u8]) {
    match Sbe::<T>::decode(payload) {
        Ok(object) => survives(&object),
        Err(error) => check_error_text(&error),
    }
}

fn check_protobuf<T: SbeObject + ProtobufObject + Debug + 'static>(payload: &[u8]) {
    match Protobuf::<T>::decode(payload) {
        Ok(object) => {
            let bytes = to_protobuf(&object);
            let again = T::from_protobuf(&bytes).expect("what was written is read");
            assert_eq!(to_protobuf(&again), bytes, "{object:?}");
            survives(&object);
        }
        Err(error) => check_error_text(&error),
    }
}

fn check_error_text(error: &DecodeError) {
    assert_says_something(error);
}

/// Compares bytes, because a NaN is not equal to itself.
fn survives<T: SbeObject + ProtobufObject + Debug>(object: &T) {
    // A payload may hold values that only writers refuse: too long a text, a number out of range.
    let bytes = match to_sbe(object) {
        Ok(bytes) => bytes,
        Err(error) => return assert_says_something(&error),
    };
    let again = T::from_sbe(&bytes).expect("what was written is read");
    let bytes = to_sbe(&again).expect("what was read can be written");
    let twice = T::from_sbe(&bytes).expect("what was written is read");
    assert_eq!(to_sbe(&twice).as_ref(), Ok(&bytes), "{object:?}");
    let through = T::from_protobuf(&to_protobuf(&again)).expect("what was written is read");
    assert_eq!(to_sbe(&through).as_ref(), Ok(&bytes), "{object:?}");
}

fn to_sbe<T: SbeObject>(object: &T) -> Result<Vec<u8>, EncodeError> {
    let mut buffer = vec![0xa5; object.sbe_length()];
    let length = object.to_sbe(&mut buffer)?;
    assert_eq!(length, buffer.len(), "the length is known before");
    Ok(buffer)
}

fn to_protobuf<T: ProtobufObject>(object: &T) -> Vec<u8> {
    let mut buffer = vec![0xa5; object.protobuf_length()];
    let length = object.to_protobuf(&mut buffer).expect("there is room for as much as it said");
    assert_eq!(length, buffer.len(), "the length is known before");
    buffer
}
