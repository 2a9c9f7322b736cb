//! [`Packet`]: the bytes on a connection of a domain. Little-endian; one packet of the socket is one `Packet`, with no
//! bytes left over.
//!
//! ```text
//!   0  u32  magic "GAPR"        4  u16  version, 4        6  u16  kind        8  …  what the kind says:
//!
//!   1 hello     u8 role (1 instance, 2 caller) | u32 process id | u64 started, ns | text process name
//!   2 route     text route | u8 state | u32 workers | text version | type request | type reply
//!               | u16 count, then text key and text value of each
//!               | u16 count, then u64 identity and text name of each instance elsewhere that the instance stands for
//!   3 listed    nothing: all routes of this moment have been told
//!   4 attach    u64 attachment | u32 instance number | u64 bytes of the request region | u64 of the claim region
//!               | text route | type request | type reply | u8 older version of the reply
//!               descriptors: request region (read-only), claim region, completion eventfd
//!   5 detach    u64 attachment
//!   6 attached  u64 attachment; descriptors: bell, eventfd
//!   7 refused   u64 attachment | u32 reason | text | text shape of the request | text shape of the reply
//!   8 change    text route | u8 state (1 open, 2 suspended, 3 draining)
//!
//!   text: u16 length, UTF-8        type: u64 fingerprint | u32 encoding | u32 version | text name
//! ```
//!
//! Magic and version keep their places in every version, so that processes of two versions report each other's version,
//! and close. An instance sends hello, route and listed, attached and refused; a caller hello, attach, detach and
//! change. Nothing here panics on any input.

use gapless_message::Encoding;
pub use gapless_message::described::TypeDescription;
use gapless_message::route_name;
use gapless_message::version::OLDER_MAX;
use gapless_wire::fields::{FieldReader, FieldWriter};

pub const PACKET_LENGTH_MAX: usize = 64 << 10;
/// Limit of a route's description: every caller receives it, and keeps it.
pub const ROUTE_LENGTH_MAX: usize = 4 << 10;
/// Limit of remote instances that an instance represents, outside `ROUTE_LENGTH_MAX`.
pub const INSTANCES_MAX: usize = 256;
pub const INSTANCE_NAME_LENGTH_MAX: usize = 64;
pub const PROCESS_NAME_LENGTH_MAX: usize = 128;
pub const DESCRIPTORS_MAX: usize = 3;

const MAGIC: u32 = u32::from_le_bytes(*b"GAPR");
/// Version of this protocol, incremented by every change of the packets or of the shared memory.
pub const PROTOCOL_VERSION: u16 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Hello(Hello),
    Route(RouteDescription),
    Listed,
    Attach(Attach),
    Detach {
        attachment: u64,
    },
    /// The instance has accepted the call table. Two descriptors.
    Attached {
        attachment: u64,
    },
    Refused {
        attachment: u64,
        refused: AttachRefusal,
    },
    /// The answer is the new description, sent to all callers.
    Change {
        route: String,
        /// New state; never [`RouteState::Gone`], which follows draining.
        to: RouteState,
    },
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRole {
    Instance = 1,
    Caller = 2,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub role: PeerRole,
    /// Process id in its own namespace. Only the id from the operating system is trusted.
    pub process_id: u32,
    /// Entry into the domain, monotonic clock; with the process id it identifies the process's life.
    pub started_ns: u64,
    pub process_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteDescription {
    pub name: String,
    pub state: RouteState,
    /// Version given by the application, for people.
    pub version: String,
    /// Metadata given by the application.
    pub metadata: Vec<(String, String)>,
    pub request: TypeDescription,
    pub reply: TypeDescription,
    /// Threads or tasks that serve it in this instance.
    pub workers: u32,
    /// Empty for an ordinary instance.
    pub stands_for: Vec<Instance>,
}

/// Remote instance of a route, represented by a local one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Equal for all processes of its domain; keys are assigned by it.
    pub identity: u64,
    /// Name for people, up to [`INSTANCE_NAME_LENGTH_MAX`] bytes.
    pub name: String,
}

/// State of an instance's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteState {
    /// Takes calls.
    Open = 1,
    /// Takes no calls at present.
    Suspended = 2,
    /// Finishes its accepted calls, and is then withdrawn.
    Draining = 3,
    Gone = 4,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Used once in a connection.
    pub attachment: u64,
    /// Number that the instance writes into claims.
    pub instance_number: u32,
    pub request_region_bytes: u64,
    pub claim_region_bytes: u64,
    pub route: String,
    pub request: TypeDescription,
    pub reply: TypeDescription,
    /// Index of the caller's older version of the reply, or 0; repeated with each reply.
    pub reply_older: u8,
}

/// Refusal of a call table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachRefusal {
    /// Reason for programs.
    pub reason: AttachRefusalReason,
    /// Reason for people.
    pub text: String,
    /// Shapes of request and reply for a mismatch, the first [`ROUTE_LENGTH_MAX`] bytes of each.
    pub shapes: (String, String),
}

impl AttachRefusal {
    /// Creates a refusal for a reason other than types.
    pub fn new(reason: AttachRefusalReason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into(), shapes: Default::default() }
    }

    pub fn mismatch((request, reply): (String, String)) -> Self {
        Self { reason: AttachRefusalReason::Mismatch, text: String::new(), shapes: (cut(request), cut(reply)) }
    }
}

fn cut(mut text: String) -> String {
    const MARK: char = '…';
    if text.len() > ROUTE_LENGTH_MAX {
        text.truncate(text.floor_char_boundary(ROUTE_LENGTH_MAX - MARK.len_utf8()));
        text.push(MARK);
    }
    text
}

/// Reason to refuse a call table, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachRefusalReason {
    /// The route is not served here, or no longer.
    NoRoute = 1,
    /// Types of the two sides differ.
    Mismatch = 2,
    /// The limit of call tables is reached.
    Limit = 3,
    /// The shared memory is invalid.
    Memory = 4,
}

impl RouteDescription {
    /// A route for tests that takes and returns bytes, with one worker.
    #[cfg(test)]
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let (request, reply) = (TypeDescription::default(), TypeDescription::default());
        let (version, metadata) = (String::new(), Vec::new());
        let (state, stands_for) = (RouteState::Open, Vec::new());
        Self { name: name.into(), state, version, metadata, request, reply, workers: 1, stands_for }
    }
}

/// Decodes and encodes a packet, for the fuzzer.
///
/// # Errors
/// Errors of decoding and of encoding.
pub fn packet_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    Packet::decode(bytes)?.encode()
}

impl Packet {
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        match self {
            Self::Attach(_) => 3,
            Self::Attached { .. } => 2,
            Self::Hello(_)
            | Self::Route(_)
            | Self::Listed
            | Self::Detach { .. }
            | Self::Refused { .. }
            | Self::Change { .. } => 0,
        }
    }

    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Route(_) => "route",
            Self::Listed => "listed",
            Self::Attach(_) => "attach",
            Self::Detach { .. } => "detach",
            Self::Attached { .. } => "attached",
            Self::Refused { .. } => "refused",
            Self::Change { .. } => "change",
        }
    }

    /// Encodes the packet.
    ///
    /// # Errors
    /// A field that is too long.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(256);
        let mut out = FieldWriter::new(&mut bytes);
        out.u32(MAGIC).u16(PROTOCOL_VERSION).u16(self.kind());
        match self {
            Self::Hello(hello) => {
                out.u8(hello.role as u8).u32(hello.process_id).u64(hello.started_ns);
                put_text(&mut out, "a process's name", &hello.process_name, PROCESS_NAME_LENGTH_MAX)?;
            }
            Self::Route(route) => {
                put_route(&mut out, route)?;
                check_length("route", bytes.len(), ROUTE_LENGTH_MAX)?;
                put_instances(&mut FieldWriter::new(&mut bytes), &route.stands_for)?;
            }
            Self::Listed => {}
            Self::Attach(attach) => {
                out.u64(attach.attachment).u32(attach.instance_number);
                out.u64(attach.request_region_bytes).u64(attach.claim_region_bytes);
                put_text(&mut out, "a route's name", &attach.route, route_name::ROUTE_NAME_LENGTH_MAX)?;
                put_type(&mut out, &attach.request)?;
                put_type(&mut out, &attach.reply)?;
                out.u8(attach.reply_older);
            }
            Self::Detach { attachment } | Self::Attached { attachment } => {
                out.u64(*attachment);
            }
            Self::Refused { attachment, refused } => {
                out.u64(*attachment).u32(refused.reason as u32);
                put_text(&mut out, "a refusal's text", &refused.text, ROUTE_LENGTH_MAX)?;
                put_text(&mut out, "a shape", &refused.shapes.0, ROUTE_LENGTH_MAX)?;
                put_text(&mut out, "a shape", &refused.shapes.1, ROUTE_LENGTH_MAX)?;
            }
            Self::Change { route, to } => {
                put_text(&mut out, "a route's name", route, route_name::ROUTE_NAME_LENGTH_MAX)?;
                out.u8(*to as u8);
            }
        }
        check_length(self.name(), bytes.len(), PACKET_LENGTH_MAX)?;
        Ok(bytes)
    }

    /// Decodes all of `bytes`.
    ///
    /// # Errors
    /// The text says what was expected and what was found.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        check_length("any", bytes.len(), PACKET_LENGTH_MAX)?;
        let mut fields = FieldReader::new(bytes);
        let magic = fields.u32("the magic")?;
        if magic != MAGIC {
            return Err(format!("{magic:#010x} begins no packet; {MAGIC:#010x} does"));
        }
        let version = fields.u16("the version")?;
        if version != PROTOCOL_VERSION {
            return Err(other_protocol(version));
        }
        let packet = match fields.u16("the kind")? {
            1 => Self::Hello(Hello {
                role: match fields.u8("the role")? {
                    1 => PeerRole::Instance,
                    2 => PeerRole::Caller,
                    other => return Err(format!("the role of a hello is {other}, not 1 or 2")),
                },
                process_id: fields.u32("the process id")?,
                started_ns: fields.u64("the start")?,
                process_name: text(&mut fields, "the process's name", PROCESS_NAME_LENGTH_MAX)?,
            }),
            2 => Self::Route(route(&mut fields, bytes.len())?),
            3 => Self::Listed,
            4 => Self::Attach(Attach {
                attachment: fields.u64("the attachment")?,
                instance_number: fields.u32("the instance number")?,
                request_region_bytes: fields.u64("the length of the request region")?,
                claim_region_bytes: fields.u64("the length of the claim region")?,
                route: name_of_route(&mut fields)?,
                request: type_description(&mut fields)?,
                reply: type_description(&mut fields)?,
                reply_older: match fields.u8("the older version")? {
                    older if usize::from(older) <= OLDER_MAX => older,
                    older => return Err(format!("older version {older} of a reply; at most {OLDER_MAX} are known")),
                },
            }),
            5 => Self::Detach { attachment: fields.u64("the attachment")? },
            6 => Self::Attached { attachment: fields.u64("the attachment")? },
            7 => {
                let attachment = fields.u64("the attachment")?;
                let reason = match fields.u32("the reason")? {
                    1 => AttachRefusalReason::NoRoute,
                    2 => AttachRefusalReason::Mismatch,
                    3 => AttachRefusalReason::Limit,
                    4 => AttachRefusalReason::Memory,
                    other => return Err(format!("the reason of a refusal is {other}, not 1 to 4")),
                };
                let mut read = |what| text(&mut fields, what, ROUTE_LENGTH_MAX);
                let (text, request, reply) =
                    (read("the text")?, read("the request's shape")?, read("the reply's shape")?);
                Self::Refused { attachment, refused: AttachRefusal { reason, text, shapes: (request, reply) } }
            }
            8 => Self::Change {
                route: name_of_route(&mut fields)?,
                to: match route_state(&mut fields)? {
                    RouteState::Gone => return Err("a route is to drain before it is gone".to_owned()),
                    to => to,
                },
            },
            other => return Err(format!("a packet of kind {other}; 1 to 8 are known")),
        };
        match fields.rest().len() {
            0 => Ok(packet),
            left => Err(format!("{left} bytes behind the end of a packet {}", packet.name())),
        }
    }

    const fn kind(&self) -> u16 {
        match self {
            Self::Hello(_) => 1,
            Self::Route(_) => 2,
            Self::Listed => 3,
            Self::Attach(_) => 4,
            Self::Detach { .. } => 5,
            Self::Attached { .. } => 6,
            Self::Refused { .. } => 7,
            Self::Change { .. } => 8,
        }
    }
}

pub fn other_version(bytes: &[u8]) -> Option<u16> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    let version = u16::from_le_bytes(*rest.first_chunk::<2>()?);
    (u32::from_le_bytes(*magic) == MAGIC && version != PROTOCOL_VERSION).then_some(version)
}

/// Message about a peer that speaks this version.
pub fn other_protocol(version: u16) -> String {
    format!("it speaks version {version} of the protocol between processes, this process version {PROTOCOL_VERSION}")
}

fn check_length(name: &str, length: usize, limit: usize) -> Result<(), String> {
    match length <= limit {
        true => Ok(()),
        false => Err(format!("a packet ({name}) has {length} bytes; at most {limit} are allowed")),
    }
}

fn put_text(out: &mut FieldWriter<'_>, what: &str, text: &str, length_max: usize) -> Result<(), String> {
    let length = text.len();
    if length > length_max {
        return Err(format!("{what} has {length} bytes; at most {length_max} are allowed"));
    }
    // Every limit is far below `u16::MAX`.
    out.u16(length as u16).bytes(text.as_bytes());
    Ok(())
}

fn put_type(out: &mut FieldWriter<'_>, described: &TypeDescription) -> Result<(), String> {
    out.u64(described.fingerprint).u32(described.encoding as u32).u32(described.version);
    put_text(out, "a type's name", &described.name, ROUTE_LENGTH_MAX)
}

fn put_route(out: &mut FieldWriter<'_>, route: &RouteDescription) -> Result<(), String> {
    put_text(out, "a route's name", &route.name, route_name::ROUTE_NAME_LENGTH_MAX)?;
    out.u8(route.state as u8).u32(route.workers);
    put_text(out, "a route's version", &route.version, ROUTE_LENGTH_MAX)?;
    put_type(out, &route.request)?;
    put_type(out, &route.reply)?;
    let count = u16::try_from(route.metadata.len());
    out.u16(count.map_err(|_| format!("{} values of metadata; at most 65535 are allowed", route.metadata.len()))?);
    for (key, value) in &route.metadata {
        put_text(out, "a key of metadata", key, ROUTE_LENGTH_MAX)?;
        put_text(out, "a value of metadata", value, ROUTE_LENGTH_MAX)?;
    }
    Ok(())
}

fn put_instances(out: &mut FieldWriter<'_>, instances: &[Instance]) -> Result<(), String> {
    check_instances(instances.len())?;
    out.u16(instances.len() as u16);
    for Instance { identity, name } in instances {
        out.u64(*identity);
        put_text(out, "an instance's name", name, INSTANCE_NAME_LENGTH_MAX)?;
    }
    Ok(())
}

fn check_instances(count: usize) -> Result<(), String> {
    match count <= INSTANCES_MAX {
        true => Ok(()),
        false => Err(format!("an instance stands for {count} instances; at most {INSTANCES_MAX} are allowed")),
    }
}

fn text(fields: &mut FieldReader<'_>, what: &'static str, length_max: usize) -> Result<String, String> {
    let length = usize::from(fields.u16(what)?);
    if length > length_max {
        return Err(format!("{what} has {length} bytes; at most {length_max} are allowed"));
    }
    let bytes = fields.bytes(length, what)?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| format!("{what} is no text: {error}"))
}

fn name_of_route(fields: &mut FieldReader<'_>) -> Result<String, String> {
    let name = text(fields, "the route's name", route_name::ROUTE_NAME_LENGTH_MAX)?;
    route_name::check(&name).map_err(|error| error.to_string())?;
    Ok(name)
}

fn type_description(fields: &mut FieldReader<'_>) -> Result<TypeDescription, String> {
    let fingerprint = fields.u64("a fingerprint")?;
    let encoding = match fields.u32("an encoding")? {
        0 => Encoding::Bytes,
        1 => Encoding::Postcard,
        2 => Encoding::Sbe,
        3 => Encoding::Protobuf,
        4 => Encoding::Json,
        other => return Err(format!("the encoding of a type is {other}, not 0 to 4")),
    };
    let version = fields.u32("a type's version")?;
    Ok(TypeDescription { name: text(fields, "a type's name", ROUTE_LENGTH_MAX)?, fingerprint, encoding, version })
}

fn route_state(fields: &mut FieldReader<'_>) -> Result<RouteState, String> {
    match fields.u8("the state")? {
        1 => Ok(RouteState::Open),
        2 => Ok(RouteState::Suspended),
        3 => Ok(RouteState::Draining),
        4 => Ok(RouteState::Gone),
        other => Err(format!("the state of a route is {other}, not 1 to 4")),
    }
}

fn route(fields: &mut FieldReader<'_>, packet_length: usize) -> Result<RouteDescription, String> {
    let name = name_of_route(fields)?;
    let state = route_state(fields)?;
    let workers = fields.u32("the workers")?;
    let version = text(fields, "the version", ROUTE_LENGTH_MAX)?;
    let (request, reply) = (type_description(fields)?, type_description(fields)?);
    let count = fields.u16("the count of metadata")?;
    // Grows with the data: the count is the peer's claim.
    let mut metadata = Vec::new();
    for _ in 0..count {
        let key = text(fields, "a key of metadata", ROUTE_LENGTH_MAX)?;
        metadata.push((key, text(fields, "a value of metadata", ROUTE_LENGTH_MAX)?));
    }
    check_length("route", packet_length - fields.rest().len(), ROUTE_LENGTH_MAX)?;
    let count = fields.u16("the count of instances")?;
    check_instances(count.into())?;
    let mut stands_for = Vec::new();
    for _ in 0..count {
        let identity = fields.u64("an instance")?;
        stands_for.push(Instance { identity, name: text(fields, "an instance's name", INSTANCE_NAME_LENGTH_MAX)? });
    }
    Ok(RouteDescription { name, state, version, metadata, request, reply, workers, stands_for })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::{Random, rounds};

    fn samples() -> Vec<Packet> {
        let described = |name: &str, fingerprint, encoding| TypeDescription {
            name: name.to_owned(),
            fingerprint,
            encoding,
            version: 3,
        };
        let request = described("Order", 7, Encoding::Postcard);
        let reply = described("Fill", u64::MAX, Encoding::Json);
        let mut route = RouteDescription::new("orders/new");
        route.metadata = vec![("region".to_owned(), "north".to_owned()), (String::new(), String::new())];
        (route.state, route.version, route.workers) = (RouteState::Draining, "1.2".to_owned(), 12);
        (route.request, route.reply) = (request.clone(), reply.clone());
        let instance = |identity, name: &str| Instance { identity, name: name.to_owned() };
        route.stands_for = vec![instance(u64::MAX, "depot/orders"), instance(1, "")];
        let attach = Attach {
            attachment: 5,
            instance_number: 6,
            request_region_bytes: 1 << 40,
            claim_region_bytes: 4096,
            route: "orders/new".to_owned(),
            request,
            reply,
            reply_older: 63,
        };
        let hello = Hello { role: PeerRole::Caller, process_id: 1, started_ns: 2, process_name: "gäste".to_owned() };
        vec![
            Packet::Hello(hello),
            Packet::Route(route),
            Packet::Listed,
            Packet::Attach(attach),
            Packet::Detach { attachment: 8 },
            Packet::Attached { attachment: 9 },
            Packet::Refused { attachment: 1, refused: AttachRefusal::new(AttachRefusalReason::Limit, "full") },
            Packet::Refused { attachment: 1, refused: AttachRefusal::mismatch(("u8".to_owned(), "u16".to_owned())) },
            Packet::Change { route: "orders/new".to_owned(), to: RouteState::Suspended },
        ]
    }

    #[test]
    fn packets_round_trip_and_not_in_part() {
        for packet in samples() {
            let bytes = packet.encode().unwrap();
            assert_eq!(Packet::decode(&bytes), Ok(packet.clone()));
            for cut in 0..bytes.len() {
                assert!(Packet::decode(&bytes[..cut]).is_err(), "{} cut at {cut}", packet.name());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(Packet::decode(&longer).unwrap_err().contains("1 bytes behind"), "{}", packet.name());
        }
    }

    #[test]
    fn decoder_survives_any_bytes() {
        let mut random = Random::seeded();
        let samples = samples().iter().map(|packet| packet.encode().unwrap()).collect::<Vec<_>>();
        for _ in 0..rounds(50_000, 5_000) {
            let mut bytes = samples[random.below(samples.len() as u64) as usize].clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(4) {
                    0 => bytes[at] = random.number() as u8,
                    1 => bytes[at] = random.pick(&[0, 0xff, 0x80, 1]),
                    2 => bytes.truncate(at + 1),
                    _ => bytes.extend(std::iter::repeat_n(random.number() as u8, random.below(40) as usize)),
                }
            }
            if let Ok(packet) = Packet::decode(&bytes) {
                assert_eq!(packet.encode().as_ref(), Ok(&bytes));
            }
            let noise = (0..random.below(64)).map(|_| random.number() as u8).collect::<Vec<_>>();
            assert!(Packet::decode(&noise).is_err());
        }
    }

    #[test]
    fn too_long_fields_are_refused() {
        let mut route = RouteDescription::new("r");
        route.metadata = vec![("key".to_owned(), "x".repeat(ROUTE_LENGTH_MAX))];
        let error = Packet::Route(route).encode().unwrap_err();
        assert!(error.contains("at most 4096 are allowed"), "{error}");
        let instance = |length| Instance { identity: 1, name: "x".repeat(length) };
        let with = |stands_for| Packet::Route(RouteDescription { stands_for, ..RouteDescription::new("r") }).encode();
        assert!(
            with(vec![instance(INSTANCE_NAME_LENGTH_MAX); INSTANCES_MAX])
                .is_ok_and(|bytes| Packet::decode(&bytes).is_ok())
        );
        assert!(with(vec![instance(0); INSTANCES_MAX + 1]).unwrap_err().contains("at most 256 are allowed"));
        assert!(with(vec![instance(INSTANCE_NAME_LENGTH_MAX + 1)]).unwrap_err().contains("at most 64 are allowed"));
        assert!(Packet::decode(&vec![0; PACKET_LENGTH_MAX + 1]).unwrap_err().contains("at most 65536"));
        let refused = AttachRefusal::mismatch(("ä".repeat(ROUTE_LENGTH_MAX), "x".repeat(ROUTE_LENGTH_MAX)));
        assert_eq!((refused.shapes.0.len(), refused.shapes.1.len()), (ROUTE_LENGTH_MAX - 1, ROUTE_LENGTH_MAX));
        assert!(Packet::Refused { attachment: 1, refused }.encode().is_ok());
        let hello = Hello { role: PeerRole::Instance, process_id: 1, started_ns: 0, process_name: "x".repeat(129) };
        assert!(Packet::Hello(hello).encode().is_err());
        let bytes = Packet::Route(RouteDescription::new("a b")).encode().unwrap();
        assert!(Packet::decode(&bytes).unwrap_err().contains("no route's name"));
        let bytes = Packet::Change { route: "r".to_owned(), to: RouteState::Gone }.encode().unwrap();
        assert!(Packet::decode(&bytes).unwrap_err().contains("is to drain"));
    }

    #[test]
    fn other_version_is_named() {
        let mut bytes = Packet::Listed.encode().unwrap();
        bytes[4] = 1;
        assert_eq!(
            Packet::decode(&bytes),
            Err("it speaks version 1 of the protocol between processes, this process version 4".to_owned())
        );
    }
}
