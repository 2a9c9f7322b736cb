//! What time it is in the stream: who leads tells it to who follows, so that time goes on evenly when another one leads
//! whose clock says something else (decision 8). Whoever knows it tells it at a new connection, too: a member that has just
//! started knows it before it can be elected.

use super::Member;
use super::core::Core;
use crate::consensus::{MemberId, Role};
use crate::link::Content;

/// Who leads tells the time so often, ns.
const TELL_INTERVAL_NS: u64 = 1_000_000_000;
/// An operator hears of a clock that is so far off, ns.
const FAR_OFF_NS: u64 = 1_000_000_000;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next_ns: u64,
    is_far_off: bool,
}

impl Told {
    /// A member that begins to lead tells it at once.
    pub const fn begins_to_lead(&mut self) {
        self.next_ns = 0;
    }
}

impl Core {
    /// Another member has told the time. Of those that do not lead it is taken as long as none is known.
    pub fn hear_time(&mut self, from: MemberId, bytes: &[u8]) {
        let leads = self.role.leader == Some(from);
        if !leads && self.ingress.time().ahead_ns().is_some() {
            return;
        }
        let time_ns = <[u8; 8]>::try_from(bytes).ok().map(u64::from_le_bytes);
        if !time_ns.is_some_and(|time_ns| self.ingress.hear_time(time_ns, self.now)) {
            self.warn(from, &"it says a time that never is");
        }
        self.warn_of_clock();
    }

    fn warn_of_clock(&mut self) {
        let ahead_ns = self.ingress.time().ahead_ns().unwrap_or(0);
        let is_far_off = ahead_ns.unsigned_abs() >= FAR_OFF_NS;
        if is_far_off && !self.told_time.is_far_off {
            tracing::warn!(
                ahead_s = ahead_ns / 1_000_000_000,
                "the stream's time is not that of this machine's clock; it goes on, and is led back by half a millisecond a second"
            );
        }
        self.told_time.is_far_off = is_far_off;
    }
}

impl Member {
    /// Tells one member, if it is known here.
    pub(super) fn tell_time_to(&mut self, member: u64) {
        if let Some(time_ns) = self.core.ingress.time().at(self.core.now) {
            // Not sent: then it is not connected any more, and is told when it is.
            let _ = self.links.send(member, Content::Time, &time_ns.to_le_bytes(), &[]);
        }
    }

    /// Where this member leads, it tells everybody: when it begins to, and now and then.
    #[inline]
    pub(super) fn tell_time(&mut self) {
        if self.core.now.monotonic_ns >= self.core.told_time.next_ns && self.core.role.role == Role::Leader {
            self.tell_time_to_all();
        }
    }

    #[cold]
    fn tell_time_to_all(&mut self) {
        self.core.told_time.next_ns = self.core.now.monotonic_ns + TELL_INTERVAL_NS;
        self.core.warn_of_clock();
        self.links.peers().collect::<Vec<_>>().into_iter().for_each(|peer| self.tell_time_to(peer));
    }
}
