//! [`trait@State`]: a service's state in serde's form, with name, version and shape in each snapshot.
//!
//! ```text
//!  0  8  "GAPSERDE"
//!  8  u16  format, 1
//! 10  u32  version of the state
//! 14  u64  fingerprint of its shape
//! 22  u16  length of the name, then the name
//!  …  u32  length of the shape, then the shape
//!  …  …    postcard
//! ```

mod second_process;

pub use second_process::check_in_two_processes;

use crate::difference::difference;
use crate::postcard_reader;
use crate::shape::{Shape, fingerprint, shape_of};
use crate::typed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, LinkedList, VecDeque};
use std::marker::PhantomData;

/// First bytes of a snapshot of this form.
pub const MAGIC: [u8; 8] = *b"GAPSERDE";
const FORMAT: u16 = 1;

/// A type that gives the same bytes in all processes after the same sequence of changes. Members of a cluster compare
/// the bytes of their states, and of what their services write: an equal `HashMap` would have other bytes on each.
///
/// ```compile_fail,E0277
/// use gapless_message::State;
/// use serde::{Deserialize, Serialize};
/// use std::collections::HashMap;
///
/// #[derive(Serialize, Deserialize, State)]
/// struct Ledger {
///     balances: HashMap<u64, u64>,
/// }
/// ```
///
/// Nor do messages that a service writes, if a field names the message itself:
///
/// ```compile_fail,E0277
/// use gapless_message::{Deterministic, Message};
/// use serde::{Deserialize, Serialize};
/// use std::collections::HashMap;
///
/// #[derive(Serialize, Deserialize, Message)]
/// struct Folder {
///     folders: HashMap<String, Folder>,
/// }
///
/// fn is_deterministic<T: Deterministic>() {}
/// is_deterministic::<Folder>();
/// ```
///
/// With the attribute it compiles:
///
/// ```
/// # use gapless_message::State;
/// # use serde::{Deserialize, Serialize};
/// /// It might come from another crate.
/// #[derive(Serialize, Deserialize)]
/// struct Decimal(i128);
///
/// #[derive(Serialize, Deserialize, State)]
/// struct Ledger {
///     #[state(deterministic, shape = "Decimal 1")]
///     sum: Decimal,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no fixed order or meaning in every process, so no state holds it, and no service writes it in \
               a reply, a refusal, a notice, an event or a timer",
    label = "not deterministic",
    note = "use `BTreeMap` and `BTreeSet` for `HashMap` and `HashSet`, a number for `Instant` and `SystemTime`; derive \
            `Message` for what is sent, `State` for other types of this crate",
    note = "for a type of another crate that is safe, put `#[state(deterministic, shape = \"a name and a version\")]` on the \
            field of a state, `#[message(deterministic, …)]` on that of a message"
)]
pub trait Deterministic {
    /// Compiles only if all fields are deterministic; does nothing.
    #[doc(hidden)]
    fn assert_fields() {}
}

/// Stands for a recursive type in the bounds of its fields.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Itself;

impl Deterministic for Itself {}

/// Compiles only for deterministic types; does nothing.
#[doc(hidden)]
pub const fn assert_deterministic<T: Deterministic + ?Sized>() {}

/// State of a service that serde writes and reads: at most 256 levels of nested options, structs, sequences and enums,
/// and at most 65,536 elements that take no bytes. Derived:
///
/// ```
/// use gapless_message::State;
/// use gapless_message::state::{self, OldState};
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeMap;
///
/// // The state of last year's program.
/// #[derive(Serialize, Deserialize, State)]
/// #[state(name = "Ledger")]
/// struct OldLedger {
///     balances: BTreeMap<u64, u32>,
/// }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, State)]
/// #[state(version = 2, upgrade = Ledger::of_older)]
/// struct Ledger {
///     balances: BTreeMap<u64, u64>,
///     transfers: u64,
/// }
///
/// impl Ledger {
///     fn of_older(old: OldState<'_>) -> Result<Self, String> {
///         let OldLedger { balances } = old.decode()?;
///         let balances = balances.into_iter().map(|(account, balance)| (account, balance.into())).collect();
///         Ok(Self { balances, transfers: 0 })
///     }
/// }
///
/// let mut snapshot = Vec::new();
/// state::write(&OldLedger { balances: [(7, 100)].into() }, &mut snapshot);
/// assert_eq!(state::read(&snapshot), Ok(Ledger { balances: [(7, 100)].into(), transfers: 0 }));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no state",
    label = "not a state",
    note = "a struct or enum is one with `#[derive(serde::Serialize, serde::Deserialize, State)]`"
)]
pub trait State: Serialize + DeserializeOwned + Shape + Deterministic + Send + 'static {
    /// Name in snapshots.
    const NAME: &'static str;
    /// From 1.
    const VERSION: u32;

    /// Converts the state of an older version; refuses it by default. On a cluster the members are replaced one by one:
    /// they compare only states of the same version, so the upgraded state must follow from the old one alone, and both
    /// programs must change it alike until all are replaced.
    ///
    /// # Errors
    /// The reason for the operator.
    fn upgrade(old: OldState<'_>) -> Result<Self, String> {
        Err(format!("version {} is not read by this program, which has no upgrade for it", old.version))
    }
}

/// State in a snapshot of an older version.
#[derive(Clone, Copy, Debug)]
pub struct OldState<'a> {
    name: &'a str,
    version: u32,
    shape: &'a str,
    bytes: &'a [u8],
}

impl OldState<'_> {
    /// Returns the version that wrote it.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Decodes it as the type that wrote it: with its name, version and fields.
    ///
    /// # Errors
    /// `T` is another type, with the first difference; or the bytes are malformed.
    pub fn decode<T: State>(&self) -> Result<T, String> {
        if (T::NAME, T::VERSION) != (self.name, self.version) {
            return Err(format!(
                "{} of version {} cannot be read as {} of version {}",
                self.name,
                self.version,
                T::NAME,
                T::VERSION
            ));
        }
        check_shape::<T>(self.shape).map_err(|error| error.to_string())?;
        postcard_reader::read(self.bytes, usize::MAX)
    }
}

/// Reason why a snapshot is not the state of this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The snapshot was written by a function of the application. Start the program that wrote it.
    #[error("the snapshot was not written by a derived state: it begins with {found:02x?}")]
    Foreign { found: Vec<u8> },
    /// Start the program of this name, or give the state its former name.
    #[error(
        "the snapshot is of state {found}, this program has state {expected}: start the program of {found}, or set \
         `#[state(name = \"{found}\")]`"
    )]
    Name { found: String, expected: &'static str },
    /// Start the newer program.
    #[error("it was written by version {found} of {name}, this program knows {known}: start the newer program")]
    Newer { name: &'static str, found: u32, known: u32 },
    /// The program's upgrade refused an older version.
    #[error("upgrade of {name} from version {found}: {reason}")]
    Upgrade { name: &'static str, found: u32, reason: String },
    /// The fields changed without a new version. Raise the version and write an upgrade.
    #[error(
        "{name} has other fields in the same version {version}: {difference}; raise the version and add an upgrade"
    )]
    Shape { name: &'static str, version: u32, difference: String },
    /// The bytes are damaged.
    #[error("{name}: {reason}")]
    Malformed { name: &'static str, reason: String },
    /// A field writes other bytes for an equal value, such as an unordered map behind `#[state(deterministic)]`.
    #[error("{name}: a second write differs at byte {at}, as with an unordered collection; use BTreeMap or BTreeSet")]
    Unstable { name: &'static str, at: usize },
    /// A second process could not be asked, or it refused the snapshot.
    #[error("{name}: {reason}")]
    SecondProcess { name: &'static str, reason: String },
}

/// Appends a snapshot.
///
/// # Panics
/// If serde cannot write the state, or postcard cannot hold it.
pub fn write<S: State>(state: &S, into: &mut Vec<u8>) {
    let (name, shape) = (S::NAME, shape_of::<S>());
    into.extend_from_slice(&MAGIC);
    into.extend_from_slice(&FORMAT.to_le_bytes());
    into.extend_from_slice(&S::VERSION.to_le_bytes());
    into.extend_from_slice(&fingerprint(&shape).to_le_bytes());
    into.extend_from_slice(&(name.len() as u16).to_le_bytes());
    into.extend_from_slice(name.as_bytes());
    into.extend_from_slice(&(shape.len() as u32).to_le_bytes());
    into.extend_from_slice(shape.as_bytes());
    if let Err(error) = typed::append(state, into) {
        panic!("the state {name} cannot be written: {error}");
    }
}

/// Reads a snapshot of this version or of an older one.
///
/// # Errors
/// The snapshot is of another program, version or layout, or damaged.
pub fn read<S: State>(snapshot: &[u8]) -> Result<S, StateError> {
    let Some(rest) = snapshot.strip_prefix(&MAGIC) else {
        return Err(StateError::Foreign { found: snapshot[..snapshot.len().min(MAGIC.len())].to_vec() });
    };
    let malformed = |reason: String| StateError::Malformed { name: S::NAME, reason };
    let Some((old, hash)) = head(rest) else {
        return Err(malformed(format!("the head of the snapshot is damaged; it has {} bytes", snapshot.len())));
    };
    if fingerprint(old.shape) != hash {
        return Err(malformed("the fingerprint does not match the shape".to_owned()));
    }
    if old.name != S::NAME {
        return Err(StateError::Name { found: old.name.to_owned(), expected: S::NAME });
    }
    if old.version > S::VERSION {
        return Err(StateError::Newer { name: S::NAME, found: old.version, known: S::VERSION });
    }
    if old.version < S::VERSION {
        let refused = |reason| StateError::Upgrade { name: S::NAME, found: old.version, reason };
        return S::upgrade(old).map_err(refused);
    }
    check_shape::<S>(old.shape)?;
    postcard_reader::read(old.bytes, usize::MAX).map_err(malformed)
}

/// Identity of a snapshot's form: its version and shape. Only snapshots of the same form have equal bytes for equal
/// states. 0 for bytes of another kind.
#[must_use]
pub fn form_of(snapshot: &[u8]) -> u64 {
    snapshot.strip_prefix(&MAGIC).and_then(head).map_or(0, |(state, hash)| {
        let form = hash.rotate_left(32) ^ u64::from(state.version);
        if form == 0 { 1 } else { form }
    })
}

/// Writes, reads and writes a state again, in this process; a test calls [`check_in_two_processes`].
///
/// # Errors
/// The state that was read back has other bytes, or cannot be read.
pub fn check<S: State>(state: &S) -> Result<(), StateError> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    write(state, &mut first);
    write(&read::<S>(&first)?, &mut second);
    match first_difference(&first, &second) {
        None => Ok(()),
        Some(at) => Err(StateError::Unstable { name: S::NAME, at }),
    }
}

/// Returns the first differing byte of two snapshots of one state; `None` if they are equal, or of different types.
#[must_use]
pub fn first_difference(first: &[u8], second: &[u8]) -> Option<usize> {
    let (of_first, of_second) =
        (first.strip_prefix(&MAGIC).and_then(head)?, second.strip_prefix(&MAGIC).and_then(head)?);
    let form = |(state, hash): (OldState<'_>, u64)| (state.name.to_owned(), state.version, hash);
    if form(of_first) != form(of_second) || first == second {
        return None;
    }
    Some(first.iter().zip(second).take_while(|(first, second)| first == second).count())
}

fn head(bytes: &[u8]) -> Option<(OldState<'_>, u64)> {
    let (format, bytes) = bytes.split_first_chunk()?;
    if u16::from_le_bytes(*format) != FORMAT {
        return None;
    }
    let (version, bytes) = bytes.split_first_chunk()?;
    let (hash, bytes) = bytes.split_first_chunk()?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (name, bytes) = bytes.split_at_checked(u16::from_le_bytes(*length).into())?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (shape, bytes) = bytes.split_at_checked(u32::from_le_bytes(*length).try_into().ok()?)?;
    let (name, shape) = (std::str::from_utf8(name).ok()?, std::str::from_utf8(shape).ok()?);
    Some((OldState { name, version: u32::from_le_bytes(*version), shape, bytes }, u64::from_le_bytes(*hash)))
}

fn check_shape<S: State>(found: &str) -> Result<(), StateError> {
    match difference((&shape_of::<S>(), found), ("in this program", "in the snapshot")) {
        None => Ok(()),
        Some(difference) => Err(StateError::Shape { name: S::NAME, version: S::VERSION, difference }),
    }
}

macro_rules! deterministic {
    ($($type:ty),* $(,)?) => {
        $(impl Deterministic for $type {})*
    };
}

deterministic! {
    bool, char, f32, f64, (), String, str,
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize,
    std::num::NonZeroU8, std::num::NonZeroU16, std::num::NonZeroU32, std::num::NonZeroU64,
    std::num::NonZeroU128, std::num::NonZeroUsize, std::num::NonZeroIsize, std::num::NonZeroI8, std::num::NonZeroI16,
    std::num::NonZeroI32, std::num::NonZeroI64, std::num::NonZeroI128,
    std::time::Duration, std::net::IpAddr, std::net::Ipv4Addr,
    std::net::Ipv6Addr, std::net::SocketAddr,
}

macro_rules! of_deterministic {
    ($($type:ty, $($held:ident)+;)*) => {
        $(impl<$($held: Deterministic),+> Deterministic for $type {})*
    };
}

of_deterministic! {
    Option<T>, T;
    Vec<T>, T;
    VecDeque<T>, T;
    LinkedList<T>, T;
    BTreeSet<T>, T;
    Box<T>, T;
    Box<[T]>, T;
    std::num::Wrapping<T>, T;
    std::ops::Range<T>, T;
    std::ops::RangeInclusive<T>, T;
    Result<T, E>, T E;
    BTreeMap<K, V>, K V;
    (A,), A;
    (A, B), A B;
    (A, B, C), A B C;
    (A, B, C, D), A B C D;
    (A, B, C, D, E), A B C D E;
    (A, B, C, D, E, F), A B C D E F;
    (A, B, C, D, E, F, G), A B C D E F G;
    (A, B, C, D, E, F, G, H), A B C D E F G H;
    (A, B, C, D, E, F, G, H, I), A B C D E F G H I;
    (A, B, C, D, E, F, G, H, I, J), A B C D E F G H I J;
    (A, B, C, D, E, F, G, H, I, J, K), A B C D E F G H I J K;
    (A, B, C, D, E, F, G, H, I, J, K, L), A B C D E F G H I J K L;
}

impl Deterministic for Box<str> {}

impl<T: Deterministic + ?Sized> Deterministic for std::sync::Arc<T> {}

impl Deterministic for crate::Json {}

impl<T> Deterministic for gapless_schema::Sbe<T> {}

impl<T> Deterministic for gapless_schema::Protobuf<T> {}

impl<T: Deterministic, const N: usize> Deterministic for [T; N] {}

impl<T: ?Sized> Deterministic for PhantomData<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::HashMap;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize, crate::State)]
    struct Book<T> {
        orders: BTreeMap<u64, Vec<Order>>,
        extra: T,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, crate::State)]
    enum Order {
        Limit { price: i64, quantity: u32 },
        Market(u32),
        None,
    }

    fn book() -> Book<Option<String>> {
        let orders = vec![Order::Limit { price: -5, quantity: 7 }, Order::Market(3), Order::None];
        Book { orders: [(9, orders), (2, Vec::new())].into(), extra: Some("x".to_owned()) }
    }

    fn written<S: State>(state: &S) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(state, &mut bytes);
        bytes
    }

    #[test]
    fn state_round_trips() {
        let state = book();
        assert_eq!(read(&written(&state)), Ok(book()));
        check(&state).unwrap();
        check(&Book::<u8>::default()).unwrap();
    }

    #[test]
    fn damaged_snapshots_are_errors() {
        let whole = written(&book());
        for cut in 0..whole.len() {
            assert!(read::<Book<Option<String>>>(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() - 20 {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            // A changed value of a field is left to the checksums of the file.
            if let Ok(read) = read::<Book<Option<String>>>(&changed) {
                assert_eq!(written(&read), changed, "at {at}");
            }
        }
        let mut long = whole;
        long.push(0);
        assert!(matches!(read::<Book<Option<String>>>(&long), Err(StateError::Malformed { .. })));
    }

    #[test]
    fn foreign_snapshots_are_named() {
        let error = read::<Book<u8>>(b"GAPSTORE").unwrap_err();
        assert!(error.to_string().contains("not written by a derived state"), "{error}");
        assert!(matches!(read::<Book<u8>>(&[]), Err(StateError::Foreign { .. })));
        let error = read::<Order>(&written(&Book::<u8>::default())).unwrap_err();
        assert!(
            error.to_string().starts_with("the snapshot is of state Book, this program has state Order"),
            "{error}"
        );
    }

    #[test]
    fn versions_are_compared() {
        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::State)]
        #[state(name = "Book", version = 3)]
        struct Newer(u8);
        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::State)]
        #[state(name = "Book", version = 4, upgrade = upgraded)]
        struct Newest(u16);
        fn upgraded(old: OldState<'_>) -> Result<Newest, String> {
            match old.version() {
                3 => Ok(Newest(old.decode::<Newer>()?.0.into())),
                _ => Err(old.decode::<Newer>().unwrap_err()),
            }
        }

        assert_eq!(read(&written(&Newer(7))), Ok(Newest(7)));
        let error = read::<Newer>(&written(&Newest(7))).unwrap_err();
        assert!(matches!(error, StateError::Newer { found: 4, known: 3, .. }), "{error}");
        let error = read::<Newer>(&written(&Book::<u8>::default())).unwrap_err();
        assert!(error.to_string().contains("has no upgrade for it"), "{error}");
        let error = read::<Newest>(&written(&Book::<u8>::default())).unwrap_err();
        assert!(error.to_string().contains("Book of version 1 cannot be read as Book of version 3"), "{error}");
    }

    #[test]
    fn changed_fields_need_a_version() {
        let error = read::<Book<u16>>(&written(&Book::<u8>::default())).unwrap_err();
        let expected =
            "Book has other fields in the same version 1: Book.extra is u16 in this program and u8 in the snapshot";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn message_may_be_in_a_state() {
        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
        enum Side {
            Buy,
            Sell,
        }
        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::State)]
        struct Sides(Vec<Side>);
        let sides = Sides(vec![Side::Sell, Side::Buy]);
        assert_eq!(read(&written(&sides)), Ok(sides));
    }

    #[test]
    fn smuggled_map_is_found() {
        #[derive(Serialize, Deserialize, crate::State)]
        struct Smuggler {
            #[state(deterministic)]
            map: HashMap<u64, u64>,
        }
        // Equal orders of 64 keys by chance: one in 64 factorial.
        let error = check(&Smuggler { map: (0..64).map(|key| (key, key)).collect() }).unwrap_err();
        assert!(matches!(error, StateError::Unstable { .. }), "{error}");
    }
}
