use super::encoded;
use super::values_round_trip::{Everything, Kind, Tree, everything};
use gapless_rpc::Message;
use gapless_rpc::message::postcard_reader::{DEPTH_MAX, EMPTY_ELEMENTS_MAX};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Chain {
    next: Option<Box<Chain>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Holes {
    holes: Vec<()>,
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn of_random_bytes(bytes: Vec<u8>) {
        if let Ok(value) = Everything::decode(&bytes) {
            prop_assert!(Everything::decode(&encoded(&value)).is_ok());
        }
        let _ = Kind::decode(&bytes);
        let _ = Tree::decode(&bytes);
        let _ = String::decode(&bytes);
        let _ = Everything::from_json(&bytes);
    }

    #[test]
    fn damaged_message_is_safe(value in everything(), at: prop::sample::Index, byte: u8) {
        let mut bytes = encoded(&value);
        let at = at.index(bytes.len());
        let cut = Everything::decode(&bytes[..at]).unwrap_err();
        prop_assert!(cut.to_string().starts_with("Everything: "), "{}", cut);
        bytes.push(0);
        let long = Everything::decode(&bytes).unwrap_err().to_string();
        prop_assert!(long.ends_with(&format!("{} bytes were found", bytes.len())), "{}", long);
        bytes[at] = byte;
        let _ = Everything::decode(&bytes);
    }
}

#[test]
fn endless_nesting_is_refused() {
    for depth in [DEPTH_MAX as usize, 1 << 20] {
        let error = Chain::decode(&vec![1; depth]).unwrap_err().to_string();
        assert!(error.contains("at most 256 levels of nesting are allowed, at byte 128"), "{error}");
    }
    let text = "{\"next\":".repeat(1 << 16);
    assert!(Chain::from_json(text.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
    let mut chain = Chain { next: None };
    for _ in 0..127 {
        chain = Chain { next: Some(Box::new(chain)) };
    }
    assert_eq!(Chain::decode(&encoded(&chain)).unwrap(), chain);
}

#[test]
fn empty_elements_are_limited() {
    let begun = Instant::now();
    for count in [EMPTY_ELEMENTS_MAX + 4, u64::MAX >> 1, u64::MAX] {
        let mut bytes = Vec::new();
        count.encode(&mut bytes).unwrap();
        let error = Holes::decode(&bytes).unwrap_err().to_string();
        assert!(error.contains(&format!("{count} elements cannot lie in {} bytes", bytes.len())), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "they were not counted one by one");
    let holes = Holes { holes: vec![(); EMPTY_ELEMENTS_MAX as usize] };
    assert_eq!(Holes::decode(&encoded(&holes)).unwrap(), holes);
}

#[test]
fn claimed_length_allocates_nothing() {
    let error = String::decode(&[0xff, 0xff, 0xff, 0xff, 0x0f, b'a']).unwrap_err().to_string();
    assert_eq!(error, "String: a text takes 4294967295 bytes, 1 are left, at byte 5 of 6");
}

#[test]
fn errors_name_the_position() {
    let error = |bytes: &[u8]| Kind::decode(bytes).unwrap_err().to_string();
    assert_eq!(error(&[9]), "Kind: invalid value: integer `9`, expected variant index 0 <= i < 4, at byte 1 of 1");
    assert_eq!(error(&[]), "Kind: a number takes 1 bytes, 0 are left, at byte 0 of 0");
    assert_eq!(error(&[0, 0]), "Kind: it ends at byte 1, but 2 bytes were found");
    assert_eq!(error(&[3, 2, 7]), "Kind: an option's mark of value 0 or 1 is expected, 7 was found, at byte 3 of 3");
    let error = u16::decode(&[0xff, 0xff, 0x04]).unwrap_err().to_string();
    assert_eq!(error, "u16: a number of 16 bits is expected, a longer one was found, at byte 3 of 3");
    let error = char::decode(b"\x02ab").unwrap_err().to_string();
    assert_eq!(error, "char: one character is expected, 2 were found, at byte 3 of 3");
    let error = String::decode(b"\x01\xff").unwrap_err().to_string();
    assert!(error.starts_with("String: UTF-8 is expected: invalid utf-8 sequence"), "{error}");
}
