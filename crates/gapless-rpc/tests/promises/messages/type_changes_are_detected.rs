#![allow(dead_code, reason = "the types are looked at, not made")]

use gapless_rpc::Message;
use gapless_rpc::message::{Shape, version_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

macro_rules! variants {
    ($($module:ident { $($item:item)* })*) => {
        $(mod $module {
            use gapless_rpc::Message;
            use serde::{Deserialize, Serialize};
            $(
                #[derive(Serialize, Deserialize, Message)]
                $item
            )*
        })*

        fn orders() -> Vec<(&'static str, String, u64)> {
            vec![$((stringify!($module), $module::Order::shape(), $module::Order::fingerprint())),*]
        }
    };
}

variants! {
    as_it_is { pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    other_order { pub struct Order { lines: Vec<Line>, id: u64 } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    other_type { pub struct Order { id: u32, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    other_name { pub struct Order { number: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    another_field { pub struct Order { id: u64, lines: Vec<Line>, x: u8 } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    nested_type { pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i32, kind: Kind } enum Kind { A, B(u8) } }
    nested_variant { pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { B(u8), A } }
    nested_payload { pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u16) } }
    nested_name { pub struct Order { id: u64, lines: Vec<Row> } struct Row { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    an_option { pub struct Order { id: u64, lines: Option<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    a_version { #[message(version = 2)] pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    renamed { pub struct Order { #[serde(rename = "ID")] id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    all_renamed { #[serde(rename_all = "camelCase")] pub struct Order { id: u64, lines: Vec<Line> } struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    a_tuple { pub struct Order(u64, Vec<Line>); struct Line { price: i64, kind: Kind } enum Kind { A, B(u8) } }
    nothing { pub struct Order; }
}

#[test]
fn at_any_depth() {
    let orders = orders();
    let shapes: BTreeSet<_> = orders.iter().map(|(_, shape, _)| shape).collect();
    let fingerprints: BTreeSet<_> = orders.iter().map(|(_, _, fingerprint)| fingerprint).collect();
    assert_eq!((shapes.len(), fingerprints.len()), (orders.len(), orders.len()), "{orders:#?}");
    assert!(!fingerprints.contains(&0));
    assert_eq!(
        orders[0].1,
        "Order v1 {id: u64, lines: [Line]}; Line v1 {price: i64, kind: Kind}; Kind v1 enum {A, B(u8)}"
    );
    for (name, shape, fingerprint) in &orders[1..] {
        assert_eq!(version_of::<as_it_is::Order>(*fingerprint), None, "{name}: {shape}");
    }
}

#[test]
fn fingerprints_are_stable() {
    // Programs of other builds compare these numbers: they must not depend on the compiler or our own code.
    assert_eq!(as_it_is::Order::fingerprint(), gapless_rpc::message::shape::fingerprint(&as_it_is::Order::shape()));
    assert_eq!(format!("{:016x}", as_it_is::Order::fingerprint()), "2ae4ecd09073676f");
}

#[test]
fn irrelevant_change_keeps_fingerprint() {
    #[derive(Serialize, Deserialize, Message)]
    #[serde(deny_unknown_fields)]
    struct Order {
        id: u64,
        lines: Box<[Line]>,
        #[serde(skip)]
        cached: u8,
    }
    #[derive(Serialize, Deserialize, Message)]
    #[message(name = "Line")]
    struct LineOfAnotherCrate {
        price: i64,
        kind: Kind,
    }
    type Line = LineOfAnotherCrate;
    #[derive(Serialize, Deserialize, Message)]
    enum Kind {
        A,
        #[serde(alias = "b")]
        B(u8),
    }
    assert_eq!(Order::shape(), as_it_is::Order::shape());
    assert_eq!(version_of::<as_it_is::Order>(Order::fingerprint()), Some(1));
}

#[test]
fn recursive_types_have_a_shape() {
    #[derive(Serialize, Deserialize, Message)]
    struct Tree {
        value: u32,
        children: Vec<Tree>,
    }
    #[derive(Serialize, Deserialize, Message)]
    struct Ping(Option<Box<Pong>>);
    #[derive(Serialize, Deserialize, Message)]
    enum Pong {
        Ping {
            #[message(deterministic)]
            inner: Box<Ping>,
            tree: Tree,
        },
    }
    assert_eq!(Tree::shape(), "Tree v1 {value: u32, children: [Tree]}");
    assert_eq!(
        Ping::shape(),
        "Ping v1 (Pong?); Pong v1 enum {Ping {inner: Ping, tree: Tree}}; Tree v1 {value: u32, children: [Tree]}"
    );
    assert!(Pong::shape().starts_with("Pong v1 enum {"));
}

#[test]
fn generic_instances_differ() {
    #[derive(Serialize, Deserialize, Message)]
    struct Page<T> {
        items: Vec<T>,
    }
    #[derive(Serialize, Deserialize, Message)]
    struct Both {
        first: Page<u8>,
        second: Page<String>,
        third: Page<u8>,
    }
    let expected =
        "Both v1 {first: Page, second: Page#2, third: Page}; Page v1 {items: [u8]}; Page#2 v1 {items: [String]}";
    assert_eq!(Both::shape(), expected);
    assert_ne!(Page::<u8>::fingerprint(), Page::<u16>::fingerprint());
    assert_eq!(Page::<u8>::fingerprint(), Page::<u8>::fingerprint());
}

#[test]
fn unknown_shape_can_be_declared() {
    #[derive(Default, Serialize, Deserialize)]
    struct Foreign(u8);
    #[derive(Serialize, Deserialize, Message)]
    struct Told {
        #[message(shape = "Foreign of other-crate 3")]
        foreign: Foreign,
        #[serde(with = "as_text")]
        #[message(shape = "u64 as text")]
        number: u64,
    }
    mod as_text {
        pub fn serialize<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&number.to_string())
        }
        pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
            let text: String = serde::Deserialize::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        }
    }
    assert_eq!(Told::shape(), "Told v1 {foreign: Foreign of other-crate 3, number: u64 as text}");
    let bytes = super::encoded(&Told { foreign: Foreign(3), number: 12 });
    assert_eq!(Told::decode(&bytes).unwrap().number, 12);
    let error = Told::decode(b"\x03\x01x").map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "Told: invalid digit found in string, at byte 3 of 3");

    #[derive(Clone, Serialize, Deserialize, Message)]
    #[serde(from = "String", into = "String")]
    #[message(name = "celsius", shape = "String with a unit")]
    struct Celsius(f64);
    impl From<String> for Celsius {
        fn from(text: String) -> Self {
            Self(text.trim_end_matches('C').parse().unwrap_or(f64::NAN))
        }
    }
    impl From<Celsius> for String {
        fn from(Celsius(degrees): Celsius) -> Self {
            format!("{degrees}C")
        }
    }
    assert_eq!(Celsius::shape(), "celsius v1 = String with a unit");
    assert_eq!(Celsius::decode(b"\x043.5C").unwrap().0, 3.5);
}

#[test]
fn user_names_do_not_collide() {
    mod own {
        use serde::{Deserialize, Serialize};
        #[derive(Serialize, Deserialize, gapless_rpc::Message)]
        pub struct Message(pub Shape, pub Encoding);
        #[derive(Serialize, Deserialize, gapless_rpc::Message)]
        #[message(crate = ::gapless_rpc)]
        pub struct Shape {
            pub version: u32,
            pub writer: u32,
            pub r#type: u8,
        }
        #[derive(Serialize, Deserialize, gapless_rpc::Message)]
        pub enum Encoding {
            Vec,
            Ok,
        }
    }
    assert_eq!(
        own::Message::shape(),
        "Message v1 (Shape, Encoding); Shape v1 {version: u32, writer: u32, type: u8}; Encoding v1 enum {Vec, Ok}"
    );
    fn takes<T: Shape>() {}
    takes::<own::Shape>();
}
