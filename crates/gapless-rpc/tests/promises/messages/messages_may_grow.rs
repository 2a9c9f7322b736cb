//! Types are made at run time here; they are encoded and decoded by the functions that the derive calls.

use gapless_rpc::message::{Encoding, Message, MessageError, typed};
use gapless_testkit::random::{Random, rounds};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, SeqAccess, VariantAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, SerializeTuple, Serializer};
use std::cell::RefCell;
use std::fmt;

#[derive(Clone, Debug)]
enum Kind {
    Truth,
    Byte,
    Number,
    Signed,
    Text,
    Nothing,
    Option(Box<Kind>),
    List(Box<Kind>),
    Pair(Box<[Kind; 2]>),
    Struct(Vec<Kind>),
    Enum(Vec<Kind>),
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Truth(bool),
    Byte(u8),
    Number(u64),
    Signed(i64),
    Text(String),
    Nothing,
    Option(Option<Box<Value>>),
    List(Vec<Value>),
    Pair(Vec<Value>),
    Struct(Vec<Value>),
    Enum(u32, Box<Value>),
}

/// Names for the maximum of fields and variants. Postcard writes none of them.
static NAMES: [&str; 64] = [""; 64];

impl Kind {
    fn any(random: &mut Random, depth: u64) -> Self {
        let inner = |random: &mut Random| Self::any(random, depth - 1);
        let several = |random: &mut Random, least: u64| {
            (0..least + random.below(3)).map(|_| Self::any(random, depth - 1)).collect::<Vec<_>>()
        };
        match random.below(if depth == 0 { 6 } else { 11 }) {
            0 => Self::Truth,
            1 => Self::Byte,
            2 => Self::Number,
            3 => Self::Signed,
            4 => Self::Text,
            5 => Self::Nothing,
            6 => Self::Option(Box::new(inner(random))),
            7 => Self::List(Box::new(inner(random))),
            8 => Self::Pair(Box::new([inner(random), inner(random)])),
            9 => Self::Struct(several(random, 0)),
            _ => Self::Enum(several(random, 1)),
        }
    }

    fn default(&self) -> Value {
        match self {
            Self::Truth => Value::Truth(false),
            Self::Byte => Value::Byte(0),
            Self::Number => Value::Number(0),
            Self::Signed => Value::Signed(0),
            Self::Text => Value::Text(String::new()),
            Self::Nothing => Value::Nothing,
            Self::Option(_) => Value::Option(None),
            Self::List(_) => Value::List(Vec::new()),
            Self::Pair(kinds) => Value::Pair(kinds.iter().map(Self::default).collect()),
            Self::Struct(kinds) => Value::Struct(kinds.iter().map(Self::default).collect()),
            Self::Enum(kinds) => Value::Enum(0, Box::new(kinds[0].default())),
        }
    }

    fn value(&self, random: &mut Random) -> Value {
        match self {
            Self::Truth => Value::Truth(random.below(2) == 0),
            Self::Byte => Value::Byte(random.number() as u8),
            Self::Number => Value::Number(random.number() >> random.below(64)),
            Self::Signed => Value::Signed(random.number() as i64 >> random.below(64)),
            Self::Text => Value::Text((0..random.below(5)).map(|_| random.pick(&['a', 'ä', '€'])).collect()),
            Self::Nothing => Value::Nothing,
            Self::Option(kind) => Value::Option((random.below(2) == 0).then(|| Box::new(kind.value(random)))),
            Self::List(kind) => Value::List((0..random.below(4)).map(|_| kind.value(random)).collect()),
            Self::Pair(kinds) => Value::Pair(kinds.iter().map(|kind| kind.value(random)).collect()),
            Self::Struct(kinds) => Value::Struct(kinds.iter().map(|kind| kind.value(random)).collect()),
            Self::Enum(kinds) => {
                let variant = random.below(kinds.len() as u64) as usize;
                Value::Enum(variant as u32, Box::new(kinds[variant].value(random)))
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Truth(value) => serializer.serialize_bool(*value),
            Self::Byte(value) => serializer.serialize_u8(*value),
            Self::Number(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Nothing => serializer.serialize_unit(),
            Self::Option(value) => value.serialize(serializer),
            Self::List(values) => values.serialize(serializer),
            Self::Pair(values) => {
                let mut pair = serializer.serialize_tuple(values.len())?;
                values.iter().try_for_each(|value| pair.serialize_element(value))?;
                pair.end()
            }
            Self::Struct(values) => {
                let mut fields = serializer.serialize_struct("", values.len())?;
                values.iter().try_for_each(|value| fields.serialize_field("", value))?;
                fields.end()
            }
            Self::Enum(variant, value) => serializer.serialize_newtype_variant("", *variant, "", value),
        }
    }
}

impl<'de> DeserializeSeed<'de> for &Kind {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Kind::Truth => bool::deserialize(deserializer).map(Value::Truth),
            Kind::Byte => u8::deserialize(deserializer).map(Value::Byte),
            Kind::Number => u64::deserialize(deserializer).map(Value::Number),
            Kind::Signed => i64::deserialize(deserializer).map(Value::Signed),
            Kind::Text => String::deserialize(deserializer).map(Value::Text),
            Kind::Nothing => <()>::deserialize(deserializer).map(|()| Value::Nothing),
            Kind::Option(kind) => deserializer.deserialize_option(OptionOf(kind)),
            Kind::List(kind) => deserializer.deserialize_seq(ListOf(kind)),
            Kind::Pair(kinds) => deserializer.deserialize_tuple(2, Fields(&**kinds, 2)).map(Value::Pair),
            Kind::Struct(kinds) => {
                let fields = Fields(kinds, kinds.len());
                deserializer.deserialize_struct("", &NAMES[..kinds.len()], fields).map(Value::Struct)
            }
            Kind::Enum(kinds) => deserializer.deserialize_enum("", &NAMES[..kinds.len()], VariantOf(kinds)),
        }
    }
}

struct OptionOf<'a>(&'a Kind);
struct ListOf<'a>(&'a Kind);
struct VariantOf<'a>(&'a [Kind]);
/// Fields, and how many of them have no default.
struct Fields<'a>(&'a [Kind], usize);

macro_rules! expects {
    ($what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($what)
        }
    };
}

impl<'de> Visitor<'de> for OptionOf<'_> {
    type Value = Value;
    expects!("an option");

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Option(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.deserialize(deserializer).map(|value| Value::Option(Some(Box::new(value))))
    }
}

impl<'de> Visitor<'de> for ListOf<'_> {
    type Value = Value;
    expects!("a list");

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element_seed(self.0)? {
            values.push(value);
        }
        Ok(Value::List(values))
    }
}

impl<'de> Visitor<'de> for VariantOf<'_> {
    type Value = Value;
    expects!("a variant");

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (variant, value) = data.variant::<u32>()?;
        let kind = self.0.get(variant as usize).ok_or_else(|| de::Error::custom("no such variant"))?;
        value.newtype_variant_seed(kind).map(|value| Value::Enum(variant, Box::new(value)))
    }
}

/// Same as the code of `#[derive(Deserialize)]`.
impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Vec<Value>;
    expects!("fields");

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<Value>, A::Error> {
        let mut values = Vec::new();
        for (index, kind) in self.0.iter().enumerate() {
            values.push(match elements.next_element_seed(kind)? {
                Some(value) => value,
                None if index >= self.1 => kind.default(),
                None => return Err(de::Error::invalid_length(index, &self)),
            });
        }
        Ok(values)
    }
}

thread_local! {
    /// Fields of [`Grown`] in the reading program, and how many of them the first version had.
    static PROGRAM: RefCell<(Vec<Kind>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

#[derive(Debug, PartialEq)]
struct Grown(Vec<Value>);

impl Serialize for Grown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::Struct(self.0.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Grown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kinds, first) = PROGRAM.with_borrow(Clone::clone);
        deserializer.deserialize_struct("", &NAMES[..kinds.len()], Fields(&kinds, first)).map(Self)
    }
}

impl Message for Grown {
    const TYPE_NAME: &'static str = "Grown";
    const ENCODING: Encoding = Encoding::Postcard;

    fn fingerprint() -> u64 {
        1
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        typed::encode::<Self, Self>(self, into)
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        typed::decode(bytes, usize::MAX)
    }
}

fn written(message: &Grown, fields: usize) -> Vec<u8> {
    let mut bytes = b"before".to_vec();
    let newer = &message.0[fields..];
    typed::encode_without(message, &mut bytes, |into| {
        newer.iter().try_for_each(|value| typed::encode::<Grown, _>(value, into))
    })
    .unwrap();
    assert!(bytes.starts_with(b"before"));
    bytes.split_off(6)
}

#[test]
fn any_versions_are_compatible() {
    let mut random = Random::seeded();
    for _ in 0..rounds(3000, 300) {
        let mut kinds = Vec::new();
        let mut versions = Vec::new();
        for _ in 0..=1 + random.below(4) {
            let more = 1 + random.below(3);
            kinds.extend((0..more).map(|_| Kind::any(&mut random, 3)));
            versions.push(kinds.len());
        }
        let program = |fields: usize| PROGRAM.set((kinds[..fields].to_vec(), versions[0]));
        for writes in &versions {
            let message = Grown(kinds[..*writes].iter().map(|kind| kind.value(&mut random)).collect());
            for reads in &versions {
                // The newer program uses the version of the older one, whichever side it is.
                let spoken = *writes.min(reads);
                let bytes = written(&message, spoken);
                program(*reads);
                let read = typed::decode::<Grown>(&bytes, if reads > writes { spoken } else { usize::MAX });
                let default = kinds[spoken..*reads].iter().map(Kind::default);
                let expected: Vec<_> = message.0[..spoken].iter().cloned().chain(default).collect();
                assert_eq!(read, Ok(Grown(expected)), "{writes} of {versions:?} fields to {reads}: {kinds:?}");
                if reads < writes {
                    program(*writes);
                    let whole = typed::decode::<Grown>(&written(&message, *writes), usize::MAX).unwrap();
                    assert_eq!(written(&whole, spoken), bytes);
                }
            }
        }
    }
}
