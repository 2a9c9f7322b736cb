//! [`TraceContext`]: W3C's recommendation "Trace Context" of 2021: `traceparent`, `tracestate`, and the treatment of
//! malformed ones.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::sync::Arc;

/// The trace of a call, and the span in it that makes the call; all zeros without one.
///
/// ```
/// # mod gapless { pub use gapless_trace as rpc; }
/// use gapless::rpc::TraceContext;
///
/// let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let trace: TraceContext = traceparent.parse()?;
/// assert!(trace.is_sampled());
/// assert_eq!(trace.to_string(), traceparent);
/// # Ok::<(), gapless_trace::TraceParentError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Equal in all processes.
    pub trace_id: u128,
    /// Span id of the caller.
    pub span_id: u64,
    /// W3C flags; bit 0: sampled.
    pub flags: u8,
    state: Option<Arc<str>>,
}

/// A malformed `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no traceparent: expected is 00-TRACE-SPAN-FLAGS with 32, 16 and 2 lower-case hexadecimal digits, of which TRACE and SPAN are not zero"
)]
pub struct TraceParentError {
    /// First characters of the text.
    pub found: String,
}

const PARENT_LENGTH: usize = 55;
/// Sampled, and random trace id; all others are sent as zero.
const FLAGS_KNOWN: u8 = 0b11;
const SAMPLED: u8 = 1;
/// Limits of a `tracestate`: bytes, members, and the length from which a member is dropped first.
const STATE_LENGTH_MAX: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;
const MEMBER_LENGTH_LONG: usize = 128;

impl TraceContext {
    pub const NONE: Self = Self { trace_id: 0, span_id: 0, flags: 0, state: None };

    #[must_use]
    pub const fn new(trace_id: u128, span_id: u64, flags: u8) -> Self {
        Self { trace_id, span_id, flags: flags & FLAGS_KNOWN, state: None }
    }

    #[must_use]
    pub fn begin() -> Self {
        Self::new(u128::from(random_id()) << 64 | u128::from(random_id()), random_id(), SAMPLED)
    }

    /// Parses a `traceparent`. For a version after 00, the four fields of 00 are read, as W3C demands.
    ///
    /// # Errors
    /// The text is no `traceparent`.
    pub fn parse(traceparent: &str) -> Result<Self, TraceParentError> {
        Self::read(traceparent.as_bytes())
            .ok_or_else(|| TraceParentError { found: traceparent.chars().take(PARENT_LENGTH + 9).collect() })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (parent, rest) = bytes.split_first_chunk::<PARENT_LENGTH>()?;
        if [2, 35, 52].iter().any(|at| parent[*at] != b'-') {
            return None;
        }
        let field = |from: usize, to: usize| parent[from..to].iter().try_fold(0, |value, digit| hex(value, *digit));
        let (version, trace_id, span_id) = (field(0, 2)?, field(3, 35)?, field(36, 52)? as u64);
        let is_length_right = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };
        let read = Self::new(trace_id, span_id, field(53, 55)? as u8);
        (is_length_right && !read.is_none()).then_some(read)
    }

    /// Ignores malformed headers; without a `traceparent` there is no `tracestate`. Join several `tracestate` headers
    /// with commas.
    #[must_use]
    pub fn from_headers(traceparent: Option<&str>, tracestate: Option<&str>) -> Self {
        let Some(Ok(trace)) = traceparent.map(|text| Self::parse(text.trim())) else { return Self::NONE };
        trace.with_state(tracestate.unwrap_or_default())
    }

    /// Empty if malformed. Beyond 512 bytes, members of more than 128 are dropped first, then the last ones.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        self.state = valid_state(tracestate);
        self
    }

    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// An id is zero.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.trace_id == 0 || self.span_id == 0
    }

    /// Reports whether the caller may have recorded its span.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    pub(crate) fn child(&self) -> Self {
        if self.is_none() { Self::begin() } else { Self { span_id: random_id(), ..self.clone() } }
    }
}

impl FromStr for TraceContext {
    type Err = TraceParentError;

    fn from_str(traceparent: &str) -> Result<Self, TraceParentError> {
        Self::parse(traceparent)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags & FLAGS_KNOWN)
    }
}

fn hex(value: u128, digit: u8) -> Option<u128> {
    let digit = match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => return None,
    };
    Some(value << 4 | u128::from(digit))
}

/// Sanitizes a `tracestate` for sending; `None` if it is malformed.
fn valid_state(tracestate: &str) -> Option<Arc<str>> {
    let members =
        tracestate.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty());
    let mut members: Vec<&str> = members.collect();
    if members.len() > STATE_MEMBERS_MAX || !members.iter().all(|member| is_member(member)) {
        return None;
    }
    let is_too_long =
        |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>() > STATE_LENGTH_MAX + 1;
    while is_too_long(&members) {
        let long = members.iter().rposition(|member| member.len() > MEMBER_LENGTH_LONG);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    (!members.is_empty()).then(|| members.join(",").into())
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_name = |name: &str, length_max: usize, may_begin_with_digit: bool| {
        let is_first = |byte: u8| byte.is_ascii_lowercase() || may_begin_with_digit && byte.is_ascii_digit();
        let is_next = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
        name.len() <= length_max && name.bytes().next().is_some_and(is_first) && name.bytes().all(is_next)
    };
    let is_key = match key.split_once('@') {
        None => is_name(key, 256, false),
        Some((tenant, system)) => is_name(tenant, 241, true) && is_name(system, 14, false),
    };
    let is_value =
        matches!(value.len(), 1..=256) && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=');
    is_key && is_value
}

/// Random, never zero. Each thread has its own seed (splitmix64).
fn random_id() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
    }
    loop {
        let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        STATE.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let id = mixed ^ mixed >> 31;
        if id != 0 {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn traceparent_survives_a_round_trip() {
        let trace = TraceContext::parse(PARENT).unwrap();
        assert_eq!(trace, TraceContext::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7, 1));
        assert_eq!(trace.to_string(), PARENT);
        let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00")).unwrap();
        assert!(!unsampled.is_sampled() && unsampled.trace_id == trace.trace_id);
        assert_eq!(TraceContext::parse(&PARENT.replace("-01", "-ff")).unwrap().flags, 3);
        for later in [
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes",
        ] {
            assert_eq!(TraceContext::parse(later), Ok(trace.clone()), "{later}");
        }
    }

    #[test]
    fn bad_traceparent_is_refused() {
        let wrong = [
            String::new(),
            PARENT[..54].to_owned(),
            format!("{PARENT}-"),
            format!("{PARENT}0"),
            PARENT.replace("00-4b", "ff-4b"),
            PARENT.replace("00-4b", "01-4b") + "0",
            PARENT.replace("4bf9", "4BF9"),
            PARENT.replace("4bf9", "4bg9"),
            PARENT.replace("4bf9", "+bf9"),
            PARENT.replace("-00f0", "_00f0"),
            PARENT.replace("00-4b", "0-04b"),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            "ä".repeat(40),
        ];
        for wrong in wrong {
            let error = TraceContext::parse(&wrong).unwrap_err();
            assert!(error.to_string().contains("00-TRACE-SPAN-FLAGS"), "{error}");
            assert_eq!(TraceContext::from_headers(Some(&wrong), Some("a=1")), TraceContext::NONE, "{wrong}");
        }
        assert_eq!(TraceContext::from_headers(None, Some("a=1")), TraceContext::NONE);
    }

    #[test]
    fn valid_tracestate_travels() {
        let state = |text: &str| TraceContext::from_headers(Some(PARENT), Some(text)).state().map(str::to_owned);
        assert_eq!(
            state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".to_owned())
        );
        assert_eq!(state(" a=1 ,,\tb@c= x"), Some("a=1,b@c= x".to_owned()));
        assert_eq!(state(""), None);
        let keys = ["A=1", "1=1", "=1", "a", "a=", "a=b=c", "a b=1", "a@=1", "@a=1", "a@b@c=1", "a=é", "a=\u{1}"];
        for malformed in keys {
            assert_eq!(state(&format!("good=1,{malformed}")), None, "{malformed}");
        }
        let many = |count: usize| (0..count).map(|each| format!("k{each}=1")).collect::<Vec<_>>().join(",");
        assert_eq!(state(&many(32)), Some(many(32)));
        assert_eq!(state(&many(33)), None);
        let (long, short) = (format!("long={}", "x".repeat(200)), |name: &str| format!("{name}={}", "x".repeat(100)));
        let all = [short("a"), long.clone(), short("b"), long, short("c"), short("d"), short("e"), short("f")];
        let kept = [short("a"), short("b"), short("c"), short("d")].join(",");
        assert_eq!(state(&all.join(",")), Some(kept.clone()));
        assert!(kept.len() <= STATE_LENGTH_MAX);
    }

    #[test]
    fn ids_are_distinct_and_nonzero() {
        let ids: std::collections::HashSet<u64> = (0..1_000).map(|_| random_id()).collect();
        assert!(ids.len() == 1_000 && !ids.contains(&0));
        let begun = TraceContext::begin();
        assert_eq!(TraceContext::parse(&begun.to_string()), Ok(begun.clone()));
        let child = begun.child();
        assert!(child.trace_id == begun.trace_id && child.span_id != begun.span_id && child.is_sampled());
    }
}
