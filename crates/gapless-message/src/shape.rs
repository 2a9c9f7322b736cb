//! [`Shape`]: a type's layout as one line of text; two programs with the same text read each other's postcard. The
//! type's own definition comes first, then those of the named types in it, each once, so that recursive types are
//! finite: `Order v2 {id: u64, lines: [Line]}; Line v1 {price: i64, note: String?}`. Types with the same name get a
//! number: `Page`, `Page#2`.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

#[diagnostic::on_unimplemented(
    message = "the shape of `{Self}` is not known, so a change of it would not be noticed",
    label = "its shape is not known",
    note = "derive `Message` for `{Self}`, or describe it on the field: `#[message(shape = \"a name and a version\")]`, \
            `#[state(shape = …)]` in a state"
)]
pub trait Shape: 'static {
    fn write(writer: &mut ShapeWriter);

    fn write_version(writer: &mut ShapeWriter, _version: u32) {
        Self::write(writer);
    }
}

#[derive(Debug, Default)]
pub struct ShapeWriter {
    line: String,
    met: Vec<(Option<TypeId>, String)>,
    definitions: Vec<String>,
}

impl ShapeWriter {
    pub fn text(&mut self, text: &str) {
        self.line.push_str(text);
    }

    pub fn of<T: Shape + ?Sized>(&mut self) {
        T::write(self);
    }

    pub fn item(&mut self, name: &str) {
        if !self.line.ends_with(['{', '(']) {
            self.line.push_str(", ");
        }
        self.line.push_str(name);
    }

    /// On the first use, `define` writes the definition after name and version.
    pub fn named<T: 'static + ?Sized>(&mut self, name: &str, version: u32, define: impl FnOnce(&mut Self)) {
        let id = TypeId::of::<T>();
        match self.met.iter().find(|(other, _)| *other == Some(id)) {
            Some((_, known)) => self.line.push_str(known),
            None => self.define(Some(id), name, version, define),
        }
    }

    /// Does not count as a use of the type: a recursive use refers to the current version, because only the outermost
    /// value of a message is written and read in an older one.
    pub fn older(&mut self, name: &str, version: u32, define: impl FnOnce(&mut Self)) {
        self.define(None, name, version, define);
    }

    fn define(&mut self, id: Option<TypeId>, name: &str, version: u32, define: impl FnOnce(&mut Self)) {
        let is_taken = |name: &str| self.met.iter().any(|(_, taken)| taken == name);
        let mut unique = name.to_owned();
        let mut number = 1;
        while is_taken(&unique) {
            number += 1;
            unique = format!("{name}#{number}");
        }
        self.line.push_str(&unique);
        let place = self.definitions.len();
        self.definitions.push(String::new());
        let outer = std::mem::replace(&mut self.line, format!("{unique} v{version}"));
        self.met.push((id, unique));
        define(self);
        self.definitions[place] = std::mem::replace(&mut self.line, outer);
    }

    fn finish(self) -> String {
        if self.definitions.is_empty() { self.line } else { self.definitions.join("; ") }
    }
}

#[must_use]
pub fn shape_of<T: Shape>() -> String {
    let mut writer = ShapeWriter::default();
    T::write(&mut writer);
    writer.finish()
}

/// Nested types have their current form: a changed one gives another text, so that its old form is refused instead of
/// misread.
#[must_use]
pub fn shape_at<T: Shape>(version: u32) -> String {
    let mut writer = ShapeWriter::default();
    T::write_version(&mut writer, version);
    writer.finish()
}

/// 64-bit FNV-1a; never 0, which disables the comparison.
#[must_use]
pub const fn fingerprint(shape: &str) -> u64 {
    let bytes = shape.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    if hash == 0 { 1 } else { hash }
}

macro_rules! plain {
    ($($type:ty => $text:literal),* $(,)?) => {
        $(impl Shape for $type {
            fn write(writer: &mut ShapeWriter) {
                writer.text($text);
            }
        })*
    };
}

plain! {
    bool => "bool", char => "char", f32 => "f32", f64 => "f64", () => "()", String => "String", str => "String",
    u8 => "u8", u16 => "u16", u32 => "u32", u64 => "u64", u128 => "u128", usize => "usize",
    i8 => "i8", i16 => "i16", i32 => "i32", i64 => "i64", i128 => "i128", isize => "isize",
    std::num::NonZeroU8 => "u8!0", std::num::NonZeroU16 => "u16!0", std::num::NonZeroU32 => "u32!0",
    std::num::NonZeroU64 => "u64!0", std::num::NonZeroU128 => "u128!0", std::num::NonZeroUsize => "usize!0",
    std::num::NonZeroI8 => "i8!0", std::num::NonZeroI16 => "i16!0", std::num::NonZeroI32 => "i32!0",
    std::num::NonZeroI64 => "i64!0", std::num::NonZeroI128 => "i128!0", std::num::NonZeroIsize => "isize!0",
    std::time::Duration => "Duration", std::time::SystemTime => "SystemTime", std::path::PathBuf => "Path",
    std::net::IpAddr => "IpAddr", std::net::Ipv4Addr => "Ipv4Addr", std::net::Ipv6Addr => "Ipv6Addr",
    std::net::SocketAddr => "SocketAddr", std::net::SocketAddrV4 => "SocketAddrV4",
    std::net::SocketAddrV6 => "SocketAddrV6",
}

macro_rules! around {
    ($($type:ty, $held:ident: $before:literal $after:literal);* $(;)?) => {
        $(impl<$held: Shape> Shape for $type {
            fn write(writer: &mut ShapeWriter) {
                writer.text($before);
                writer.of::<$held>();
                writer.text($after);
            }
        })*
    };
}

around! {
    Option<T>, T: "" "?";
    Vec<T>, T: "[" "]";
    VecDeque<T>, T: "[" "]";
    LinkedList<T>, T: "[" "]";
    BinaryHeap<T>, T: "[" "]";
    BTreeSet<T>, T: "[" "]";
    Box<T>, T: "" "";
    Box<[T]>, T: "[" "]";
    Rc<T>, T: "" "";
    Arc<T>, T: "" "";
    std::num::Wrapping<T>, T: "" "";
    std::ops::Range<T>, T: "Range(" ")";
    std::ops::RangeInclusive<T>, T: "RangeInclusive(" ")";
    std::cell::Cell<T>, T: "" "";
    std::cell::RefCell<T>, T: "" "";
    std::sync::Mutex<T>, T: "" "";
}

impl Shape for Box<str> {
    fn write(writer: &mut ShapeWriter) {
        writer.text("String");
    }
}

impl<T: Shape + ToOwned + ?Sized> Shape for Cow<'static, T> {
    fn write(writer: &mut ShapeWriter) {
        writer.of::<T>();
    }
}

impl<T: Shape> Shape for [T] {
    fn write(writer: &mut ShapeWriter) {
        writer.of::<Vec<T>>();
    }
}

impl<T: 'static + ?Sized> Shape for PhantomData<T> {
    fn write(writer: &mut ShapeWriter) {
        writer.text("()");
    }
}

impl<T: Shape, S: 'static> Shape for HashSet<T, S> {
    fn write(writer: &mut ShapeWriter) {
        writer.of::<Vec<T>>();
    }
}

impl<K: Shape, V: Shape> Shape for BTreeMap<K, V> {
    fn write(writer: &mut ShapeWriter) {
        writer.text("[");
        writer.of::<K>();
        writer.text(" -> ");
        writer.of::<V>();
        writer.text("]");
    }
}

impl<K: Shape, V: Shape, S: 'static> Shape for HashMap<K, V, S> {
    fn write(writer: &mut ShapeWriter) {
        writer.of::<BTreeMap<K, V>>();
    }
}

impl<T: Shape, E: Shape> Shape for Result<T, E> {
    fn write(writer: &mut ShapeWriter) {
        writer.text("Result(");
        writer.of::<T>();
        writer.text(", ");
        writer.of::<E>();
        writer.text(")");
    }
}

impl<T: Shape, const N: usize> Shape for [T; N] {
    fn write(writer: &mut ShapeWriter) {
        writer.text("[");
        writer.of::<T>();
        writer.text(&format!("; {N}]"));
    }
}

macro_rules! tuples {
    ($(($($held:ident)+))*) => {
        $(impl<$($held: Shape),+> Shape for ($($held,)+) {
            fn write(writer: &mut ShapeWriter) {
                writer.text("(");
                $(
                    writer.item("");
                    writer.of::<$held>();
                )+
                writer.text(")");
            }
        })*
    };
}

tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) (A B C D E F G H I)
    (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn std_types_have_their_wire_shape() {
        assert_eq!(shape_of::<Vec<Option<(u8, String)>>>(), "[(u8, String)?]");
        assert_eq!(shape_of::<HashMap<String, [i64; 3]>>(), "[String -> [i64; 3]]");
        assert_eq!(shape_of::<Box<Arc<Cow<'static, str>>>>(), shape_of::<String>());
        assert_eq!(shape_of::<Result<(), ((u8,), u8)>>(), "Result((), ((u8), u8))");
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        const OF_FOOBAR: u64 = fingerprint("foobar");
        assert_eq!(OF_FOOBAR, 0x8594_4171_f739_67e8);
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
    }
}
