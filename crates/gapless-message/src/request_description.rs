//! [`Describe`]: the query by which a client whose request is not handled learns the service's types, and
//! [`difference_to`]: the first difference, as a sentence. A built-in query of every service: it costs nothing until a
//! request fails.

use crate::difference::{difference, title};
use crate::message::Message;
use crate::request::Request;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;

/// Asks for the types of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, crate::Message)]
#[message(name = "gapless.Describe", reply = Described)]
pub struct Describe {
    pub kind: RequestKind,
    /// Key of the request's name ([`crate::contract::name_key`]).
    pub key: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, crate::Message)]
#[message(name = "gapless.RequestKind")]
pub enum RequestKind {
    Command,
    Query,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "command",
            Self::Query => "query",
        })
    }
}

/// `None`: the service has no such request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, crate::Message)]
#[message(name = "gapless.Described")]
pub struct Described {
    pub request: Option<RequestDescription>,
}

/// Types of a request, each in all versions that the service reads, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, crate::Message)]
#[message(name = "gapless.RequestDescription")]
pub struct RequestDescription {
    pub name: String,
    pub request: Vec<VersionShape>,
    pub reply: Vec<VersionShape>,
    pub refusal: Vec<VersionShape>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, crate::Message)]
#[message(name = "gapless.VersionShape")]
pub struct VersionShape {
    pub version: u32,
    /// Truncated shapes end with `…`.
    pub shape: String,
}

/// Limit of one shape in a description, bytes; longer ones are truncated.
pub const SHAPE_LENGTH_MAX: usize = 4 << 10;
/// Limit of the shapes of one type in a description, bytes; the oldest versions are left out.
pub const SHAPES_LENGTH_MAX: usize = 8 << 10;
/// Limit of versions of one type in a description.
const VERSIONS_MAX: usize = 64;

impl RequestDescription {
    #[must_use]
    pub fn of<R: Request>() -> Self {
        Self {
            name: R::TYPE_NAME.to_owned(),
            request: shapes_of::<R>(),
            reply: shapes_of::<R::Reply>(),
            refusal: shapes_of::<R::Refusal>(),
        }
    }

    /// Whether its lengths are within the limits, as those of a real service.
    fn is_bounded(&self) -> bool {
        let fits = |shapes: &[VersionShape]| {
            let length: usize = shapes.iter().map(|each| each.shape.len()).sum();
            !shapes.is_empty() && shapes.len() <= VERSIONS_MAX && length <= SHAPES_LENGTH_MAX
        };
        self.name.len() <= SHAPE_LENGTH_MAX
            && [&self.request, &self.reply, &self.refusal].into_iter().all(|it| fits(it))
    }
}

fn shapes_of<M: Message>() -> Vec<VersionShape> {
    let newest = VersionShape { version: M::VERSION, shape: truncated(M::shape()) };
    let mut length = newest.shape.len();
    let older = M::older()
        .into_iter()
        .map(|older| VersionShape { version: older.version, shape: truncated(M::shape_as(older.version)) });
    let within_limit = older.take_while(|older| {
        length += older.shape.len();
        length <= SHAPES_LENGTH_MAX
    });
    std::iter::once(newest).chain(within_limit).take(VERSIONS_MAX).collect()
}

fn truncated(mut shape: String) -> String {
    const CUT: char = '…';
    if shape.len() > SHAPE_LENGTH_MAX {
        let mut end = SHAPE_LENGTH_MAX - CUT.len_utf8();
        while !shape.is_char_boundary(end) {
            end -= 1;
        }
        shape.truncate(end);
        shape.push(CUT);
    }
    shape
}

/// Requests of a service.
#[derive(Clone, Default)]
pub struct RequestDescriptions(Vec<KnownRequest>);

#[derive(Clone)]
struct KnownRequest {
    describe: Describe,
    make: fn() -> RequestDescription,
    /// Made at the first question: the shapes of all versions take long.
    made: OnceLock<RequestDescription>,
}

impl RequestDescriptions {
    pub fn add<R: Request>(&mut self, kind: RequestKind) {
        let key = crate::contract::name_key(R::TYPE_NAME);
        let (describe, make) = (Describe { kind, key }, RequestDescription::of::<R>);
        self.0.push(KnownRequest { describe, make, made: OnceLock::new() });
    }

    #[must_use]
    pub fn find(&self, describe: Describe) -> Described {
        let found = self.0.iter().find(|known| known.describe == describe);
        Described { request: found.map(|known| known.made.get_or_init(known.make).clone()) }
    }
}

impl fmt::Debug for RequestDescriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| known.describe)).finish()
    }
}

/// First difference between a client's request and a service's, as a sentence with the names and versions of both;
/// `None` if there is none, so that the request fails for another reason, or if the description is no honest one.
#[must_use]
pub fn difference_to<R: Request>(kind: RequestKind, service: &Described) -> Option<String> {
    let name = R::TYPE_NAME;
    let Some(theirs) = &service.request else { return Some(format!("the service has no {kind} of this name")) };
    if !theirs.is_bounded() {
        return None;
    }
    if theirs.name != name {
        return Some(format!("the service's {kind} {} has the same key; rename one of them", theirs.name));
    }
    let parts = [
        ("request", R::VERSION, R::shape(), &theirs.request),
        ("reply", R::Reply::VERSION, R::Reply::shape(), &theirs.reply),
        ("refusal", R::Refusal::VERSION, R::Refusal::shape(), &theirs.refusal),
    ];
    // A truncated shape may be equal: a certain difference comes first.
    let is_known = |shapes: &[VersionShape], ours: &str| shapes.iter().any(|each| each.is_prefix_of(ours));
    let certain = parts.iter().find(|(_, _, ours, theirs)| !is_known(theirs, ours));
    let is_exact = |shapes: &[VersionShape], ours: &str| shapes.iter().any(|each| each.shape == ours);
    let (part, version, ours, theirs) =
        certain.or_else(|| parts.iter().find(|(_, _, ours, theirs)| !is_exact(theirs, ours)))?;
    let same_version = theirs.iter().find(|each| each.version == *version);
    let nearest = same_version.or_else(|| theirs.first())?;
    let found = difference((ours, &nearest.shape), ("at the client", "at the service"))?;
    let (client, service) = (title(ours), titles(theirs));
    Some(format!("in the {part}, {found} (the client has {client}, the service {service})"))
}

impl VersionShape {
    fn is_prefix_of(&self, ours: &str) -> bool {
        self.shape == ours || self.shape.strip_suffix('…').is_some_and(|start| ours.starts_with(start))
    }
}

/// `Order v3, v2, v1`.
fn titles(shapes: &[VersionShape]) -> String {
    let older = shapes.iter().skip(1).map(|older| format!(", v{}", older.version));
    shapes.iter().take(1).map(|newest| title(&newest.shape).to_owned()).chain(older).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Serialize, Deserialize, crate::Message)]
    #[message(version = 2, reply = Booked, refusal = String)]
    struct Book {
        seat: u32,
        #[serde(default)]
        #[message(since = 2)]
        name: String,
    }

    #[derive(Serialize, Deserialize, crate::Message)]
    pub struct Booked(u64);

    mod other {
        use super::*;

        /// The client of a year ago.
        #[derive(Serialize, Deserialize, crate::Message)]
        #[message(reply = super::Booked, refusal = String)]
        pub struct Book {
            seat: u32,
        }

        /// Grown without `since`.
        pub mod grown {
            use super::*;
            #[derive(Serialize, Deserialize, crate::Message)]
            #[message(reply = super::super::Booked, refusal = String)]
            pub struct Book {
                seat: u32,
                row: u8,
            }
        }

        pub mod reply {
            use super::*;
            #[derive(Serialize, Deserialize, crate::Message)]
            #[message(reply = Booked, refusal = String)]
            pub struct Book {
                seat: u32,
            }
            #[derive(Serialize, Deserialize, crate::Message)]
            pub struct Booked(u32);
        }

        pub mod refusal {
            use super::*;
            #[derive(Serialize, Deserialize, crate::Message)]
            #[message(reply = super::super::Booked)]
            pub struct Book {
                seat: u32,
            }
        }

        pub mod newer {
            use super::*;
            #[derive(Serialize, Deserialize, crate::Message)]
            #[message(version = 3, reply = super::super::Booked, refusal = String)]
            pub struct Book {
                seat: u32,
                #[serde(default)]
                #[message(since = 2)]
                name: String,
                #[serde(default)]
                #[message(since = 3)]
                child: bool,
            }
        }
    }

    fn service() -> Described {
        let mut requests = RequestDescriptions::default();
        requests.add::<Book>(RequestKind::Command);
        requests.find(Describe { kind: RequestKind::Command, key: crate::contract::name_key("Book") })
    }

    fn found<R: Request>() -> Option<String> {
        difference_to::<R>(RequestKind::Command, &service())
    }

    #[test]
    fn first_difference_is_named() {
        assert_eq!((found::<Book>(), found::<other::Book>()), (None, None), "both are read");
        for (found, expected) in [
            (
                found::<other::grown::Book>(),
                "in the request, Book has `row: u8` at the client alone (the client has Book v1, the service Book v2, v1)",
            ),
            (
                found::<other::reply::Book>(),
                "in the reply, a part of Booked is `u32` at the client and `u64` at the service (the client has \
                 Booked v1, the service Booked v1)",
            ),
            (
                found::<other::refusal::Book>(),
                "in the refusal, the type is NoRefusal v1 enum {} at the client and String at the service (the client \
                 has NoRefusal v1, the service String)",
            ),
            (
                found::<other::newer::Book>(),
                "in the request, Book has `child: bool` at the client alone (the client has Book v3, the service Book \
                 v2, v1)",
            ),
        ] {
            assert_eq!(found.unwrap(), expected);
        }
        let none = difference_to::<Book>(RequestKind::Query, &Described::default()).unwrap();
        assert_eq!(none, "the service has no query of this name");
        let mut renamed = service();
        renamed.request.as_mut().unwrap().name = "Cook".to_owned();
        let same_key = difference_to::<Book>(RequestKind::Command, &renamed).unwrap();
        assert_eq!(same_key, "the service's command Cook has the same key; rename one of them");
    }

    #[test]
    fn only_the_kind_asked_for_is_found() {
        let mut requests = RequestDescriptions::default();
        requests.add::<Book>(RequestKind::Command);
        let key = crate::contract::name_key("Book");
        assert_eq!(requests.find(Describe { kind: RequestKind::Query, key }), Described::default());
        assert_eq!(requests.find(Describe { kind: RequestKind::Command, key: key + 1 }), Described::default());
    }

    #[test]
    fn long_shapes_are_truncated() {
        for length in SHAPE_LENGTH_MAX - 3..SHAPE_LENGTH_MAX + 3 {
            let shape = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let cut = truncated(shape.clone());
            assert!(cut.len() <= SHAPE_LENGTH_MAX, "{length}");
            assert_eq!(cut == shape, length <= SHAPE_LENGTH_MAX, "{length}");
            let cut = VersionShape { version: 1, shape: cut };
            assert!(cut.is_prefix_of(&shape) && !cut.is_prefix_of("another"));
        }
        let mut long = service();
        long.request.as_mut().unwrap().reply[0].shape = "Booked v1 …".to_owned();
        let behind = difference_to::<Book>(RequestKind::Command, &long).unwrap();
        assert!(behind.starts_with("in the reply, they differ behind the first"), "{behind}");
        long.request.as_mut().unwrap().reply[0].shape = "x".repeat(SHAPES_LENGTH_MAX + 1);
        assert_eq!(difference_to::<Book>(RequestKind::Command, &long), None, "of no service");
    }

    proptest! {
        /// Nothing of a foreign process is trusted.
        #[test]
        fn foreign_descriptions_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200), shape in "\\PC{0,60}") {
            if let Ok(described) = Described::decode(&bytes) {
                let _ = difference_to::<Book>(RequestKind::Command, &described);
            }
            let mut described = service();
            described.request.as_mut().unwrap().request = vec![VersionShape { version: 9, shape: shape.clone() }];
            prop_assert_eq!(difference_to::<Book>(RequestKind::Command, &described).is_none(), shape == Book::shape());
        }
    }
}
