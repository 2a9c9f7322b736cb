//! Errors of nested calls: with `?`, a handler returns the error of its own call to its caller.

use crate::outcome::{CallError, Refusal, Rejection};
use std::ops::RangeInclusive;

/// Codes begin with the second of [`Refusal::OWN_CODES`]; new kinds are appended.
const KINDS: [&str; 12] = [
    "no_route",
    "busy",
    "not_begun",
    "unknown",
    "timed_out",
    "mismatch",
    "bad_message",
    "panicked",
    "unavailable",
    "closed",
    "cannot_forward",
    "other_protocol",
];

impl Refusal {
    /// Codes reserved for Gapless, 0xffffff00 and above. Code 0 means no code.
    pub const OWN_CODES: RangeInclusive<u32> = 0xffff_ff00..=u32::MAX;

    pub(crate) fn of_kind(kind: &str, text: String) -> Self {
        let place = KINDS.iter().position(|known| *known == kind).map_or(0, |place| place as u32 + 1);
        Self::new(Self::OWN_CODES.start() + place, text)
    }

    /// Kind of the nested call's error ([`CallError::kind`]), if this refusal was made from one; `other` for a kind that
    /// this version does not know.
    ///
    /// ```
    /// # mod gapless { pub use gapless_rpc as rpc; }
    /// use gapless::rpc::{CallError, CallOptions, Domain};
    ///
    /// let domain = Domain::in_process("shop");
    /// let stock = domain.caller::<u64, u64>("stock/take")?;
    /// // Nobody serves `stock/take`: `?` makes a refusal of that.
    /// let _orders = domain.serve("orders").handle(move |wanted: u64, _context| Ok(stock.call(wanted)?))?;
    /// match domain.caller::<u64, u64>("orders")?.call(1) {
    ///     Err(CallError::Refused { refusal, .. }) => assert_eq!(refusal.failed_call(), Some("no_route")),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), gapless_rpc::RpcError>(())
    /// ```
    #[must_use]
    pub fn failed_call(&self) -> Option<&'static str> {
        let place = self.code.checked_sub(*Self::OWN_CODES.start())?;
        let kind = place.checked_sub(1).and_then(|place| KINDS.get(place as usize));
        Some(kind.copied().unwrap_or("other"))
    }
}

/// Keeps a refusal as it is. Turns every other error into a refusal with its text and a code of [`Refusal::OWN_CODES`],
/// which [`Refusal::failed_call`] reads.
impl From<CallError> for Rejection {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { refusal, .. } => Self::Refused(refusal),
            error => Self::Refused(Refusal::of_kind(error.kind(), error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nested_error_keeps_its_kind() {
        let (route, reason, attempts) = (|| "route".to_owned(), || "why".to_owned(), 1);
        let ends = [
            CallError::no_route(route()),
            CallError::Busy { route: route(), reason: reason() },
            CallError::NotBegun { route: route(), attempts, reason: reason() },
            CallError::Unknown { route: route(), attempts, reason: reason() },
            CallError::TimedOut { route: route(), after: Duration::ZERO, begun: true, not_taken_by: vec![] },
            CallError::Mismatch { route: route(), caller: reason(), instance: reason(), difference: reason() },
            CallError::BadMessage { route: route(), reason: reason() },
            CallError::Panicked { route: route(), reason: reason() },
            CallError::Unavailable { route: route(), reason: reason() },
            CallError::Closed,
            CallError::CannotForward { route: route(), reason: reason() },
            CallError::OtherProtocol { route: route(), process_id: 1, own: 2, found: 3 },
        ];
        for (error, code) in ends.into_iter().zip(0xffff_ff01..) {
            let (kind, text) = (error.kind(), error.to_string());
            let Rejection::Refused(refusal) = error.into() else { panic!("{kind} is no refusal") };
            assert_eq!((refusal.code, refusal.failed_call(), &*refusal.text), (code, Some(kind), &*text));
            let again: Rejection = CallError::Refused { route: route(), refusal: refusal.clone() }.into();
            assert_eq!(again, Rejection::Refused(refusal), "over two handlers, too");
        }
        assert_eq!(Refusal::new(0xffff_ff00, "").failed_call(), Some("other"));
        assert_eq!(Refusal::new(u32::MAX, "").failed_call(), Some("other"));
        assert_eq!([0, 1, 0xffff_feff].map(|code| Refusal::new(code, "").failed_call()), [None; 3]);
    }
}
