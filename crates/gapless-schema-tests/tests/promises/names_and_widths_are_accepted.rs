//! Names that generated code uses itself, or that become the same.

use gapless_schema::{Decode, Encode, Protobuf, Sbe, SbeObject};
use gapless_schema_tests::names::*;

fn object() -> TailMessage {
    TailMessage {
        block: 1,
        version: Some(2),
        acting: Tail_ { kind: Kind::Unknown_ },
        position: Tail__ { kind: TailKind::Great, entry_: Entry { clone_: Some(-5) } },
        finish_: Vec_::default().with_self_(true).with_x(true).with_1st(true),
        reader: Signed::Least,
        encoder: Some(Box::Minus),
        value: Some(7),
        value_str_: 8,
        value_or_null_: 9,
        async_: 10,
        decoder: vec![TailMessageDecoder_ {
            field: 11,
            tail: vec![TailMessageDecoderTail { version: 1.5 }],
            stage: vec![12],
        }],
        stage: vec![Signed::Least, Signed::Unknown(5)],
        group: vec![Box::Minus],
        dimension: vec![13],
        block_length: vec![14, 15],
        length: vec![],
    }
}

#[test]
fn names_and_widths_round_trip() {
    let mut buffer = vec![0; 1024];
    let length = Sbe(object()).encode(&mut buffer).unwrap();
    assert_eq!(length, Sbe(object()).encoded_length());
    assert_eq!(Sbe::<TailMessage>::decode(&buffer[..length]), Ok(object()));
    let length = Protobuf(object()).encode(&mut buffer).unwrap();
    assert_eq!(Protobuf::<TailMessage>::decode(&buffer[..length]), Ok(object()));
}

#[test]
fn widest_header_follows_the_schema() {
    let mut buffer = vec![0xa5; 1024];
    Sbe(object()).encode(&mut buffer).unwrap();
    assert_eq!(buffer[0], 0, "a spare byte");
    assert_eq!(buffer[1..9], 1u64.to_le_bytes());
    assert_eq!(buffer[9..17], 65_535u64.to_le_bytes());
    assert_eq!(buffer[17..21], 1u32.to_le_bytes());
    let block = u32::from_le_bytes(buffer[24..28].try_into().unwrap()) as usize;
    let group = 28 + block;
    assert_eq!(
        (&buffer[group..group + 8], &buffer[group + 10..group + 14]),
        (&1u64.to_le_bytes()[..], &1u32.to_le_bytes()[..])
    );
    for length in [28, group, group + 14, 100] {
        assert!(TailMessage::from_sbe(&buffer[..length]).is_err());
    }
    // A multiplication of these counts would overflow.
    for huge in [u64::MAX, u64::MAX / 2, 1 << 40] {
        let mut damaged = buffer.clone();
        damaged[group..group + 8].copy_from_slice(&huge.to_le_bytes());
        assert!(TailMessage::from_sbe(&damaged).is_err());
    }
}

#[test]
fn message_may_share_a_type_name() {
    let mut buffer = [0; 64];
    let length = TailDecoderEncoder::new(&mut buffer).unwrap().finish().unwrap();
    assert!(TailDecoderDecoder::parse(&buffer[..length]).is_ok());
    let text = StringMessage { none: b'x' };
    let length = text.to_sbe(&mut buffer).unwrap();
    assert_eq!(StringMessage::from_sbe(&buffer[..length]), Ok(text));
}
