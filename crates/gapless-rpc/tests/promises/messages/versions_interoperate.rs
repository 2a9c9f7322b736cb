use super::encoded;
use gapless_rpc::message::{OlderVersion, version_of};
use gapless_rpc::{Encoding, Message};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

mod first {
    use super::*;
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub struct Order {
        pub id: u64,
        pub note: String,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub enum Event {
        Opened,
        Closed { reason: String },
    }
}

mod second {
    use super::*;
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Order {
        pub id: u64,
        pub note: String,
        #[serde(default)]
        #[message(since = 2)]
        pub tags: Vec<String>,
        #[serde(default = "one")]
        #[message(since = 2)]
        pub instances: u32,
    }
    pub fn one() -> u32 {
        1
    }
}

mod third {
    use super::*;
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 3)]
    pub struct Order {
        pub id: u64,
        pub note: String,
        #[serde(default)]
        #[message(since = 2)]
        pub tags: Vec<String>,
        #[serde(default = "second::one")]
        #[message(since = 2)]
        pub instances: u32,
        // Takes no byte when it is empty: the end of the bytes alone would not show whether it is there.
        #[serde(default)]
        #[message(since = 3)]
        pub marker: (),
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub enum Event {
        Opened,
        Closed {
            reason: String,
        },
        #[message(since = 2)]
        Moved(u32),
    }
}

fn from_new_to_old<Writer: Message, Reader: Message>(message: &Writer) -> Result<Reader, String> {
    let version =
        version_of::<Writer>(Reader::fingerprint()).ok_or("the newer program does not know the older one's")?;
    let mut bytes = b"before".to_vec();
    message.encode_as(version, &mut bytes).map_err(|error| error.to_string())?;
    assert!(bytes.starts_with(b"before"));
    Reader::decode(&bytes[6..]).map_err(|error| error.to_string())
}

fn from_old_to_new<Writer: Message, Reader: Message>(message: &Writer) -> Result<Reader, String> {
    let version =
        version_of::<Reader>(Writer::fingerprint()).ok_or("the newer program does not know the older one's")?;
    Reader::decode_as(version, &encoded(message)).map_err(|error| error.to_string())
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn a_struct_that_has_grown(id: u64, note: String, tags: Vec<String>, instances: u32) {
        let old = first::Order { id, note: note.clone() };
        let new = second::Order { id, note: note.clone(), tags: tags.clone(), instances };
        let newest = third::Order { id, note: note.clone(), tags: tags.clone(), instances, marker: () };
        let from_old = second::Order { id, note: note.clone(), tags: Vec::new(), instances: 1 };
        let newest_from_old = third::Order { id, note, tags: Vec::new(), instances: 1, marker: () };

        prop_assert_eq!(from_old_to_new::<_, second::Order>(&old), Ok(from_old));
        prop_assert_eq!(from_new_to_old::<_, first::Order>(&new), Ok(old.clone()));
        prop_assert_eq!(from_old_to_new::<_, third::Order>(&old), Ok(newest_from_old));
        prop_assert_eq!(from_new_to_old::<_, first::Order>(&newest), Ok(old));
        prop_assert_eq!(from_old_to_new::<_, third::Order>(&new), Ok(newest.clone()));
        prop_assert_eq!(from_new_to_old::<_, second::Order>(&newest), Ok(new));
    }
}

#[test]
fn an_enum_that_has_grown() {
    let closed = "done".to_owned();
    for (old, new) in [
        (first::Event::Opened, third::Event::Opened),
        (first::Event::Closed { reason: closed.clone() }, third::Event::Closed { reason: closed }),
    ] {
        assert_eq!(from_old_to_new(&old), Ok(new.clone()));
        assert_eq!(from_new_to_old(&new), Ok(old));
    }
    let error = from_new_to_old::<_, first::Event>(&third::Event::Moved(3)).unwrap_err();
    assert_eq!(error, "Event: Moved is there since version 2, and the other side speaks version 1");
    let error = third::Event::decode_as(1, &encoded(&third::Event::Moved(3))).unwrap_err().to_string();
    assert_eq!(error, "Event: Moved is there since version 2, and the other side speaks version 1");
}

#[test]
fn new_program_selects_the_version() {
    assert_eq!(version_of::<first::Order>(second::Order::fingerprint()), None);
    assert_eq!(version_of::<second::Order>(third::Order::fingerprint()), None);
    assert_eq!(first::Order::older(), []);
    let versions: Vec<_> = third::Order::older().iter().map(|older| older.version).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(third::Order::older()[1], OlderVersion { version: 1, fingerprint: first::Order::fingerprint() });
}

#[test]
fn versions_are_not_confused() {
    let new = second::Order { id: 1, note: "x".into(), tags: vec!["y".into()], instances: 2 };
    let old = encoded(&first::Order { id: 1, note: "x".into() });
    assert!(second::Order::decode(&old).is_err(), "what is short is no message of today");
    let error = second::Order::decode_as(1, &encoded(&new)).unwrap_err().to_string();
    assert_eq!(error, "Order: it ends at byte 3, but 7 bytes were found");
    let error = second::Order::decode_as(3, &encoded(&new)).unwrap_err().to_string();
    assert_eq!(error, "Order: version 3 is asked for; this program speaks 2, and of older ones [1]");
    let mut bytes = vec![1];
    assert!(new.encode_as(0, &mut bytes).is_err());
    assert!(first::Order { id: 1, note: String::new() }.encode_as(2, &mut bytes).is_err());
    assert_eq!(bytes, [1]);
}

#[test]
fn changed_meaning_is_incompatible() {
    #[derive(Serialize, Deserialize, Message)]
    #[message(version = 4)]
    struct Order {
        id: u64,
        #[serde(default)]
        #[message(since = 2)]
        note: String,
        #[serde(default)]
        #[message(since = 4)]
        more: u8,
    }
    let versions: Vec<_> = Order::older().iter().map(|older| older.version).collect();
    assert_eq!(versions, [3], "version 3 came without an addition: it meant something else");
}

#[test]
fn grown_nested_type_is_incompatible() {
    #[derive(Serialize, Deserialize, Message)]
    struct Basket {
        orders: Vec<second::Order>,
    }
    mod before {
        #[derive(serde::Serialize, serde::Deserialize, gapless_rpc::Message)]
        pub struct Basket {
            pub orders: Vec<super::first::Order>,
        }
    }
    assert_eq!(version_of::<Basket>(before::Basket::fingerprint()), None);
    assert_eq!(Basket::ENCODING, Encoding::Postcard);
}

#[test]
fn old_json_needs_no_version() {
    let order = second::Order::from_json(br#"{"id": 7, "note": "x"}"#).unwrap();
    assert_eq!(order, second::Order { id: 7, note: "x".into(), tags: Vec::new(), instances: 1 });
    let old = first::Order::from_json(&order.to_json().unwrap()).unwrap();
    assert_eq!(old, first::Order { id: 7, note: "x".into() });
}

#[test]
fn recursive_type_is_not_misread() {
    mod before {
        #[derive(serde::Serialize, serde::Deserialize, gapless_rpc::Message)]
        pub struct Tree {
            pub value: u8,
            pub children: Vec<Tree>,
        }
    }
    #[derive(Serialize, Deserialize, Message)]
    #[message(version = 2)]
    struct Tree {
        value: u8,
        children: Vec<Tree>,
        #[serde(default)]
        #[message(since = 2)]
        color: u8,
    }
    // Version 1 of the outermost tree has trees of version 2, and no program has ever written that.
    assert_eq!(version_of::<Tree>(before::Tree::fingerprint()), None);
    let expected = "Tree v1 {value: u8, children: [Tree#2]}; Tree#2 v2 {value: u8, children: [Tree#2], color: u8}";
    assert_eq!(gapless_rpc::message::shape::shape_at::<Tree>(1), expected);
}
