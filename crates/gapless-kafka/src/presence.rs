//! [`Lease`]: a bridge's statement about itself, as JSON in a compacted topic under its name as key. A clean stop
//! leaves a tombstone.

use crate::record::PROTOCOL_VERSION;
use crate::record::fields::{ENCODINGS, hexadecimal, name_of, value_of};
use crate::record::names::is_bridge_name;
use gapless_message::described::TypeDescription;
use gapless_message::route_name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// Bridges of one prefix at most; further ones are ignored until one has gone.
pub const PEERS_MAX: usize = 1024;
/// Bytes of a lease at most, when it is read.
pub const LEASE_LENGTH_MAX: usize = 4 << 20;
/// Routes of a lease at most; the rest is ignored.
pub const ROUTES_MAX: usize = 4096;
/// Instances of a route at most; the rest is ignored.
pub const INSTANCES_MAX: usize = 1024;
const WORDS_MAX: usize = 128;
/// The shortest and the longest time for which a lease is good.
pub const LEASE_TIMES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// Statement of a bridge about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Version of the protocol.
    pub protocol: u16,
    /// Random number of this start of the bridge.
    #[serde(with = "digits")]
    pub incarnation: u64,
    /// Place of the mark in the bridge's inbox.
    pub mark: MarkPlace,
    /// The bridge's machine, for people.
    #[serde(default)]
    pub machine: String,
    /// Validity of the lease without another one, ms.
    pub lease_ms: u64,
    /// The bridge takes no more requests.
    #[serde(default)]
    pub is_stopping: bool,
    /// Offered routes.
    #[serde(default)]
    pub routes: Vec<OfferedRoute>,
}

/// Place of a mark in an inbox: nothing for an earlier incarnation begins after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkPlace {
    /// Offset.
    pub offset: i64,
    /// Append time, ms since 1970.
    pub time_ms: i64,
}

impl MarkPlace {
    /// True if offset and time are both after those of `other`: a broker's clock may go back, and a recreated topic
    /// counts from 0.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        self.offset > other.offset && self.time_ms >= other.time_ms
    }
}

/// A route that a domain serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedRoute {
    /// Name.
    pub route: String,
    /// The application's version of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Names and values by which the application describes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<(String, String)>,
    /// Type of the request.
    #[serde(with = "described")]
    pub request: TypeDescription,
    /// Type of the reply.
    #[serde(with = "described")]
    pub reply: TypeDescription,
    /// Calls that other bridges have in flight there, counted by the offering bridge.
    #[serde(default)]
    pub in_flight: u32,
    /// The ordinary instances of the domain, none that stand for others.
    pub instances: Vec<OfferedInstance>,
}

/// An instance of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedInstance {
    /// Identity, the same in every domain.
    #[serde(with = "digits")]
    pub identity: u64,
    /// Name and number of its process, for people.
    #[serde(default)]
    pub name: String,
    /// Threads or tasks that serve it; 0 where that is not known.
    #[serde(default)]
    pub workers: u32,
    /// True if it takes requests.
    pub is_open: bool,
}

/// A lease that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLease {
    #[error("it speaks version {0} of the protocol; this bridge speaks version {PROTOCOL_VERSION}")]
    OtherProtocol(u16),
    #[error("its lease cannot be read: {0}")]
    Malformed(String),
}

impl Lease {
    /// Reads a lease. Invalid route names are left out, texts for people are cut.
    ///
    /// # Errors
    /// [`BadLease`]. A version is found in every JSON object that has one.
    pub fn read(json: &[u8]) -> Result<Self, BadLease> {
        #[derive(Deserialize)]
        struct LeaseVersion {
            protocol: u16,
        }
        let malformed = |error: serde_json::Error| BadLease::Malformed(error.to_string());
        if json.len() > LEASE_LENGTH_MAX {
            let reason = format!("{} bytes; at most {LEASE_LENGTH_MAX} are allowed", json.len());
            return Err(BadLease::Malformed(reason));
        }
        let LeaseVersion { protocol } = serde_json::from_slice(json).map_err(malformed)?;
        if protocol != PROTOCOL_VERSION {
            return Err(BadLease::OtherProtocol(protocol));
        }
        let mut lease: Self = serde_json::from_slice(json).map_err(malformed)?;
        let (shortest, longest) = LEASE_TIMES;
        let times = shortest.as_millis()..=longest.as_millis();
        if !times.contains(&lease.lease_ms.into()) {
            let (first, last) = (times.start(), times.end());
            return Err(BadLease::Malformed(format!("lease_ms is {}; {first} to {last} are allowed", lease.lease_ms)));
        }
        shorten(&mut lease.machine);
        lease.routes.retain(|route| route_name::check_own(&route.route).is_ok());
        lease.routes.truncate(ROUTES_MAX);
        for route in &mut lease.routes {
            shorten(&mut route.version);
            shorten(&mut route.request.name);
            shorten(&mut route.reply.name);
            route.instances.truncate(INSTANCES_MAX);
            route.instances.iter_mut().for_each(|instance| shorten(&mut instance.name));
        }
        Ok(lease)
    }

    /// Writes the JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have a form as JSON")
    }

    /// True if it offers the same routes as `other`, whatever their load.
    #[must_use]
    pub fn offers_same_routes(&self, other: &Self) -> bool {
        let is_same_route = |(one, other): (&OfferedRoute, &OfferedRoute)| {
            (&one.route, &one.version, &one.metadata) == (&other.route, &other.version, &other.metadata)
                && (&one.request, &one.reply, &one.instances) == (&other.request, &other.reply, &other.instances)
        };
        self.incarnation == other.incarnation
            && self.is_stopping == other.is_stopping
            && self.routes.len() == other.routes.len()
            && self.routes.iter().zip(&other.routes).all(is_same_route)
    }
}

/// The bridge of a key; `None` for a key that is no name.
#[must_use]
pub fn bridge_of(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key).ok().filter(|name| is_bridge_name(name))
}

fn shorten(words: &mut String) {
    if words.chars().nth(WORDS_MAX).is_some() || words.contains(char::is_control) {
        *words = words.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect();
    }
}

/// Numbers of 64 bits as 16 hexadecimal digits: JSON readers of other languages lose bits above 2^53.
pub(crate) mod digits {
    use super::{Deserialize, Deserializer, Serializer, hexadecimal};

    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{number:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        hexadecimal(&text).ok_or_else(|| serde::de::Error::custom("16 hexadecimal digits in lower case are expected"))
    }
}

mod described {
    use super::{Deserialize, Deserializer, ENCODINGS, Serialize, Serializer, TypeDescription, name_of, value_of};
    use std::borrow::Cow;

    #[derive(Serialize, Deserialize)]
    struct LeaseJson<'a> {
        name: Cow<'a, str>,
        version: u32,
        #[serde(with = "super::digits")]
        fingerprint: u64,
        encoding: Cow<'a, str>,
    }

    pub fn serialize<S: Serializer>(described: &TypeDescription, serializer: S) -> Result<S::Ok, S::Error> {
        let TypeDescription { name, fingerprint, encoding, version } = described;
        let (name, encoding) = (name.into(), name_of(&ENCODINGS, encoding).into());
        LeaseJson { name, version: *version, fingerprint: *fingerprint, encoding }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TypeDescription, D::Error> {
        let LeaseJson { name, version, fingerprint, encoding } = LeaseJson::deserialize(deserializer)?;
        let encoding = value_of(&ENCODINGS, &encoding)
            .ok_or_else(|| serde::de::Error::custom(format!("{encoding:?} is no encoding")))?;
        Ok(TypeDescription { name: name.into_owned(), fingerprint, encoding, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_message::Encoding;

    fn lease() -> Lease {
        let described = |name: &str| TypeDescription {
            name: name.to_owned(),
            fingerprint: u64::MAX - 1,
            encoding: Encoding::Postcard,
            version: 2,
        };
        let instance =
            |identity| OfferedInstance { identity, name: "calculator.1".to_owned(), workers: 4, is_open: true };
        Lease {
            protocol: PROTOCOL_VERSION,
            incarnation: u64::MAX,
            mark: MarkPlace { offset: 17, time_ms: 1_764_000_000_000 },
            machine: "m1".to_owned(),
            lease_ms: 5_000,
            is_stopping: false,
            routes: vec![OfferedRoute {
                route: "calculator/add".to_owned(),
                version: "1.2".to_owned(),
                metadata: vec![("team".to_owned(), "blue".to_owned())],
                request: described("Sum"),
                reply: described("i64"),
                in_flight: 2,
                instances: vec![instance(7), instance(u64::MAX)],
            }],
        }
    }

    #[test]
    fn a_lease_is_read_as_it_was_written() {
        assert_eq!(Lease::read(&lease().to_json()), Ok(lease()));
    }

    #[test]
    fn load_alone_is_no_other_offer() {
        let mut busy = lease();
        busy.routes[0].in_flight = 9;
        assert!(busy.offers_same_routes(&lease()));
        busy.routes[0].instances[0].is_open = false;
        assert!(!busy.offers_same_routes(&lease()));
    }

    #[test]
    fn version_and_syntax_errors_differ() {
        let other = br#"{"protocol": 2, "future": true}"#;
        assert_eq!(Lease::read(other), Err(BadLease::OtherProtocol(2)));
        for json in ["", "{}", "[1]", r#"{"protocol": 1}"#, r#"{"protocol": -1}"#] {
            assert!(matches!(Lease::read(json.as_bytes()), Err(BadLease::Malformed(_))), "{json}");
        }
        let short = Lease { lease_ms: 3, ..lease() };
        let error = Lease::read(&short.to_json()).unwrap_err().to_string();
        assert!(error.contains("lease_ms is 3; 100 to 3600000 are allowed"), "{error}");
    }

    #[test]
    fn numbers_are_lower_case() {
        let json = String::from_utf8(lease().to_json()).unwrap();
        let upper = json.replace("ffffffffffffffff", "FFFFFFFFFFFFFFFF");
        assert!(matches!(Lease::read(upper.as_bytes()), Err(BadLease::Malformed(_))));
    }

    #[test]
    fn foreign_names_are_left_out_or_cut() {
        let mut foreign = lease();
        foreign.machine = "\u{1b}[2J".to_owned() + &"ü".repeat(1000);
        foreign.routes.push(OfferedRoute { route: "../x".to_owned(), ..OfferedRoute::default() });
        let read = Lease::read(&foreign.to_json()).unwrap();
        assert_eq!((read.routes, read.machine.chars().count()), (lease().routes, WORDS_MAX));
    }
}
