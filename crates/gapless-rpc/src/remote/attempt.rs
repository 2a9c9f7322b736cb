//! [`Attempt`]: one attempt of a call between processes, from its offer to its outcome. Its caller waits on the slot
//! directly, or the reactor signals it: no thread stands between.

use super::status::Status;
use super::table::{End, Hold, KEPT_BYTES, NotOffered, RemoteOffer, RouteTable, Ticket};
use crate::options::Waiting;
use gapless_agent::fault::crash_point;
use gapless_agent::monotonic::monotonic_ns;
use gapless_log::call_table::{ReplyHeader, RequestHeader};
use gapless_log::claim::{ClaimState, Withdrawal};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// An instance has answered; the bytes are in the caller's buffer.
    Answered(Status),
    /// An instance has answered with a status that this version does not know.
    Unintelligible(u32),
    /// No instance had taken it, and none that may is open any more. It belongs to the caller again.
    NotTaken,
    /// Lost before its handler began.
    NotBegun(&'static str),
    /// Lost after its handler had begun, at an instance that is gone.
    Unknown(&'static str),
    TimedOut {
        begun: bool,
    },
}

/// One attempt of a call. Dropping it takes the request back, or withdraws it from the instance that has it.
#[derive(Debug)]
pub(crate) struct Attempt {
    table: Arc<RouteTable>,
    ticket: Option<Ticket>,
    /// Deadline, ns of the monotonic clock; 0 without one.
    deadline_ns: u64,
    /// Time at which the whole call was made, ns of the monotonic clock.
    made_ns: u64,
    /// Outcome that it is counted as when it is dropped.
    end: End,
    is_deadline_noted: bool,
    /// The slot may hold a task to wake.
    has_task: bool,
    hold: Hold,
    /// Index of the caller's older version that the reply has, or 0.
    reply_older: u8,
}

impl Attempt {
    /// Offers a request; the header of the offer has its deadline.
    pub(crate) fn start(
        table: &Arc<RouteTable>,
        offer: RemoteOffer,
        user_headers: &[u8],
        payload: &[u8],
    ) -> Result<Self, NotOffered> {
        let ticket = table.offer(offer, user_headers, payload)?;
        Ok(Self::of(table, ticket, offer.header))
    }

    /// Takes over a one-way request as a call.
    pub(crate) fn of_sent(table: &Arc<RouteTable>, ticket: Ticket) -> Self {
        Self::of(table, ticket, RequestHeader::default())
    }

    fn of(table: &Arc<RouteTable>, ticket: Ticket, header: RequestHeader) -> Self {
        let RequestHeader { deadline_ns, sent_ns: made_ns, .. } = header;
        let (is_deadline_noted, has_task, hold, end) = (false, false, Hold::default(), End::Cancelled);
        let (table, ticket, reply_older) = (Arc::clone(table), Some(ticket), 0);
        Self { table, ticket, deadline_ns, made_ns, end, is_deadline_noted, has_task, hold, reply_older }
    }

    /// Sets the outcome to count; the default is cancelled.
    #[inline]
    pub(crate) fn count_as(&mut self, end: End) {
        self.end = end;
    }

    fn deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns).filter(|deadline_ns| *deadline_ns != 0)
    }

    /// Index of the caller's older version that the reply has, or 0 for its own.
    #[inline]
    pub(crate) const fn reply_older(&self) -> usize {
        self.reply_older as usize
    }

    /// Returns the end if it has come; a reply is in `reply`. Must not be called again after `Some`.
    pub(crate) fn try_end(&mut self, reply: &mut Vec<u8>) -> Option<AttemptEnd> {
        let ticket = self.ticket.expect("it was not asked again after its end");
        let claim = self.table.table().claim(ticket.slot);
        let seen = claim.load();
        match seen.state() {
            _ if seen.generation() != ticket.generation => Some(self.overwritten()),
            Some(ClaimState::Answered) => {
                let header = self.table.table().reply_header(ticket.slot);
                Some(self.take_reply(ticket, header, reply))
            }
            Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun) if seen.is_revoked() => {
                const REASON: &str = "the process that had it has died, or has left the domain";
                Some(match self.withdraw(reply) {
                    Ok(true) => {
                        self.hold = Hold::Lost(seen.holder());
                        AttemptEnd::Unknown(REASON)
                    }
                    Ok(false) if matches!(self.hold, Hold::Nobody) => AttemptEnd::NotTaken,
                    Ok(false) => AttemptEnd::NotBegun(REASON),
                    Err(ended) => ended,
                })
            }
            Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun) => None,
            Some(ClaimState::Free | ClaimState::Withdrawn) | None => Some(self.overwritten()),
        }
    }

    /// End of an attempt whose claim was corrupted by a faulty process.
    #[cold]
    fn overwritten(&mut self) -> AttemptEnd {
        self.hold = Hold::Nobody;
        AttemptEnd::Unknown("its claim was overwritten")
    }

    /// Takes the request back, also from an instance that has claimed it: from now on no handler begins. True if one
    /// has begun already; an error is the end that has come meanwhile.
    #[cold]
    fn withdraw(&mut self, reply: &mut Vec<u8>) -> Result<bool, AttemptEnd> {
        let ticket = self.ticket.expect("it has not ended");
        let withdrawal = self.table.table().claim(ticket.slot).withdraw(ticket.generation);
        self.hold = withdrawal.holder().map_or(Hold::Nobody, Hold::Copy);
        match withdrawal {
            Withdrawal::TakenBack | Withdrawal::NotBegun { .. } => Ok(false),
            Withdrawal::Begun { .. } => Ok(true),
            Withdrawal::Answered => {
                let header = self.table.table().reply_header(ticket.slot);
                Err(self.take_reply(ticket, header, reply))
            }
            Withdrawal::Lost => Err(self.overwritten()),
        }
    }

    /// Returns the end if the instance has posted a notice; for a caller that spins.
    #[inline]
    fn try_notice(&mut self, reply: &mut Vec<u8>) -> Option<AttemptEnd> {
        let ticket = self.ticket?;
        let header = self.table.table().notice(ticket.slot, ticket.generation)?;
        Some(self.take_reply(ticket, header, reply))
    }

    fn take_reply(&mut self, ticket: Ticket, header: ReplyHeader, reply: &mut Vec<u8>) -> AttemptEnd {
        crash_point("call_answer_seen");
        self.hold = Hold::Answered;
        self.table.table().read_reply(ticket.slot, header, reply);
        if reply.len() > KEPT_BYTES {
            self.table.note_long(ticket.slot);
        }
        match Status::read(header.status) {
            Some((status, older)) => {
                self.reply_older = older;
                AttemptEnd::Answered(status)
            }
            None => AttemptEnd::Unintelligible(header.status),
        }
    }

    /// Withdraws the request at its deadline, unless it has ended meanwhile.
    pub(crate) fn time_out(&mut self, reply: &mut Vec<u8>) -> AttemptEnd {
        self.withdraw(reply).map_or_else(|ended| ended, |begun| AttemptEnd::TimedOut { begun })
    }

    /// Waits for the end, as `waiting` says.
    pub(crate) fn wait(&mut self, waiting: Waiting, reply: &mut Vec<u8>) -> AttemptEnd {
        let began_ns = if matches!(waiting, Waiting::SpinFor(_)) { monotonic_ns() } else { 0 };
        let mut looks = 0_u32;
        // The claim is checked only from time to time: each load takes its cache line from the instance, which writes
        // there.
        let mut is_claim_due = true;
        loop {
            let ended = if is_claim_due { self.try_end(reply) } else { self.try_notice(reply) };
            if let Some(ended) = ended {
                return ended;
            }
            looks = looks.wrapping_add(1);
            is_claim_due = looks.is_multiple_of(Waiting::LOOKS_PER_TIME);
            if !is_claim_due && looks < Waiting::LOOKS_BEFORE_PARKING {
                std::hint::spin_loop();
                continue;
            }
            let spins = match waiting {
                Waiting::Spin => true,
                Waiting::Park => looks < Waiting::LOOKS_BEFORE_PARKING,
                Waiting::SpinFor(time) => {
                    looks < Waiting::LOOKS_BEFORE_PARKING || monotonic_ns() - began_ns < time.as_nanos() as u64
                }
            };
            let is_clock_due = !spins || is_claim_due;
            let now_ns = if is_clock_due && self.deadline_ns().is_some() { monotonic_ns() } else { 0 };
            if self.deadline_ns().is_some_and(|deadline_ns| now_ns >= deadline_ns) {
                return self.time_out(reply);
            }
            if spins {
                std::hint::spin_loop();
            } else {
                let left =
                    self.deadline_ns().map_or(Duration::MAX, |deadline_ns| Duration::from_nanos(deadline_ns - now_ns));
                self.sleep(left);
                is_claim_due = true;
            }
        }
    }

    fn sleep(&self, timeout: Duration) {
        let Some(ticket) = self.ticket else { return };
        if let Some(low_half) = self.table.table().claim(ticket.slot).announce_wait(ticket.generation) {
            crash_point("call_waiting");
            // A corrupted claim wakes no one, so look once a second.
            self.table.table().wait(ticket.slot, low_half, timeout.min(Duration::from_secs(1)));
        }
    }

    /// Returns the end, or has the task woken when there is one. Calls `note_deadline` if the I/O thread must learn of
    /// a new first deadline.
    pub(crate) fn poll(
        &mut self,
        context: &Context<'_>,
        note_deadline: impl FnOnce(),
        reply: &mut Vec<u8>,
    ) -> Poll<AttemptEnd> {
        let mut note_deadline = Some(note_deadline);
        loop {
            if let Some(ended) = self.try_end(reply) {
                return Poll::Ready(ended);
            }
            let Some(ticket) = self.ticket else { return Poll::Pending };
            if let Some(deadline_ns) = self.deadline_ns() {
                if monotonic_ns() >= deadline_ns {
                    return Poll::Ready(self.time_out(reply));
                }
                if !self.is_deadline_noted {
                    self.is_deadline_noted = true;
                    if self.table.note_deadline(ticket, deadline_ns)
                        && let Some(note_deadline) = note_deadline.take()
                    {
                        note_deadline();
                    }
                }
            }
            self.has_task = true;
            if self.table.want_notice(ticket, context.waker().clone()) {
                return Poll::Pending;
            }
        }
    }

    /// Reads the request back to offer it elsewhere: header, user headers and payload. `None` if a faulty process has
    /// overwritten it.
    pub(crate) fn request(&self) -> Option<(RequestHeader, Vec<u8>, Vec<u8>)> {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        let ticket = self.ticket.expect("a call that was answered still has its slot");
        let table = self.table.table();
        let header = table.read_back(ticket.slot, ticket.generation, &mut user_headers, &mut payload)?;
        Some((header, user_headers, payload))
    }
}

impl Attempt {
    /// Gives up a one-way request: the table frees the slot once it is answered.
    pub(crate) fn leave(mut self) {
        self.ticket = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let is_call_over = !matches!(self.end, End::Retried | End::Forwarded | End::TakenBack);
            let took_ns = (ticket.is_timed && is_call_over).then(|| monotonic_ns().saturating_sub(self.made_ns));
            self.table.finish(ticket, self.has_task, self.hold, (self.end, took_ns));
        }
    }
}
