use super::encoded;
use gapless_rpc::message::postcard_reader;
use gapless_rpc::{Encoding, Message};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Everything {
    pub numbers: (u8, u16, u32, u64, u128, i8, i16, i32, i64, i128),
    pub truth: bool,
    pub character: char,
    pub floats: [f64; 2],
    pub single: f32,
    pub text: String,
    pub maybe: Option<Option<String>>,
    pub nothing: (),
    pub map: BTreeMap<String, Vec<u16>>,
    pub kind: Kind,
    pub page: Page<Point, 2>,
    pub tree: Tree,
    #[serde(skip)]
    pub cached: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum Kind {
    Unit,
    New(u64),
    Tuple(u8, String),
    Struct { left: i16, right: Option<Box<Kind>> },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Point(pub i32, pub i32);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Page<T, const N: usize> {
    pub items: Vec<T>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Message)]
pub struct Tree {
    pub value: u32,
    pub children: Vec<Tree>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Message)]
struct Nothing;

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Unit),
        any::<u64>().prop_map(Kind::New),
        any::<(u8, String)>().prop_map(|(number, text)| Kind::Tuple(number, text)),
    ];
    leaf.prop_recursive(5, 20, 1, |inner| {
        (any::<i16>(), proptest::option::of(inner))
            .prop_map(|(left, right)| Kind::Struct { left, right: right.map(Box::new) })
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = any::<u32>().prop_map(|value| Tree { value, children: Vec::new() });
    leaf.prop_recursive(4, 30, 4, |inner| {
        (any::<u32>(), proptest::collection::vec(inner, 0..4)).prop_map(|(value, children)| Tree { value, children })
    })
}

pub fn everything() -> impl Strategy<Value = Everything> {
    let finite = proptest::num::f64::NORMAL | proptest::num::f64::ZERO;
    let numbers = any::<(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128)>();
    let plain = (numbers, any::<(bool, char)>(), [finite, finite], -1e9f32..1e9, any::<(String, Option<String>)>());
    let map = proptest::collection::btree_map(any::<String>(), any::<Vec<u16>>(), 0..5);
    (plain, map, kind(), any::<Vec<(i32, i32)>>(), tree()).prop_map(|(plain, map, kind, points, tree)| {
        let (numbers, (truth, character), floats, single, (text, inner)) = plain;
        let maybe = inner.map(Some);
        let items = points.into_iter().map(|(x, y)| Point(x, y)).collect();
        let page = Page { items };
        Everything {
            numbers,
            truth,
            character,
            floats,
            single,
            text,
            maybe,
            nothing: (),
            map,
            kind,
            page,
            tree,
            cached: 0,
        }
    })
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn in_both_forms(value in everything()) {
        let bytes = encoded(&value);
        prop_assert_eq!(&bytes, &postcard::to_stdvec(&value).unwrap());
        prop_assert_eq!(&Everything::decode(&bytes).unwrap(), &value);
        prop_assert_eq!(&postcard::from_bytes::<Everything>(&bytes).unwrap(), &value);
        prop_assert_eq!(&Everything::from_json(&value.to_json().unwrap()).unwrap(), &value);
    }

    #[test]
    fn plain_numbers_and_texts_too(number: i64, float: f64, text: String, character: char) {
        prop_assert_eq!(i64::decode(&encoded(&number)).unwrap(), number);
        prop_assert_eq!(f64::decode(&encoded(&float)).unwrap().to_bits(), float.to_bits());
        prop_assert_eq!(String::decode(&encoded(&text)).unwrap(), text);
        prop_assert_eq!(char::decode(&encoded(&character)).unwrap(), character);
    }

    #[test]
    fn reader_agrees_with_postcard(bytes: Vec<u8>) {
        reads_the_same::<Vec<(u16, i64, Option<String>)>>(&bytes)?;
        reads_the_same::<(u16, u32, i128)>(&bytes)?;
        reads_the_same::<(u128, bool)>(&bytes)?;
        reads_the_same::<Kind>(&bytes)?;
    }
}

fn reads_the_same<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Result<(), TestCaseError> {
    let theirs = postcard::take_from_bytes::<T>(bytes).ok();
    let theirs = theirs.filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value);
    prop_assert_eq!(postcard_reader::read::<T>(bytes, usize::MAX).ok(), theirs);
    Ok(())
}

#[test]
fn failed_encoding_appends_nothing() {
    #[derive(Serialize, Deserialize, Message)]
    struct Bad {
        first: u32,
        #[serde(serialize_with = "never")]
        #[message(shape = "never v1")]
        second: u32,
    }
    fn never<S: serde::Serializer>(_: &u32, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
    let mut into = vec![1, 2, 3];
    Point(1, -1).encode(&mut into).unwrap();
    assert_eq!(into, [1, 2, 3, 2, 1]);
    let error = Bad { first: 1, second: 2 }.encode(&mut into).unwrap_err();
    assert!(error.to_string().starts_with("Bad: it cannot be written as postcard"), "{error}");
    assert_eq!(into, [1, 2, 3, 2, 1]);
}

#[test]
fn types_say_what_they_are() {
    assert_eq!(
        (Everything::TYPE_NAME, Everything::ENCODING, Everything::VERSION),
        ("Everything", Encoding::Postcard, 1)
    );
    assert_eq!(encoded(&Nothing), b"");
    assert_eq!(Nothing::decode(b""), Ok(Nothing));
    assert!(Nothing::decode(b"\0").is_err());
}

#[test]
fn map_with_other_keys_has_no_json() {
    #[derive(Debug, Serialize, Deserialize, Message)]
    struct Odd {
        map: HashMap<(u8, u8), u8>,
    }
    let odd = Odd { map: HashMap::from([((1, 2), 3)]) };
    assert_eq!(odd.to_json().unwrap_err().to_string(), "Odd: it cannot be written as JSON: key must be a string");
    assert_eq!(Odd::decode(&encoded(&odd)).unwrap().map, odd.map);
    let error = Odd::from_json(b"{\"map\": 7}").unwrap_err().to_string();
    assert!(error.starts_with("Odd: as JSON: invalid type: integer `7`, expected a map at line 1 column 9"), "{error}");
}
