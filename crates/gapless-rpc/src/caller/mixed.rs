//! Calls of several types, as a tuple, under one deadline.

use super::call::Call;
use super::timeout::in_time;
use crate::block_on::{block_on, block_on_until};
use crate::message::Message;
use crate::outcome::CallError;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A tuple of 2 to 8 [`Call`]s. Sealed.
pub trait Calls: Sized {
    /// Outcomes, in the order of the tuple.
    type Outcomes;
    /// Outcomes of the calls that have ended.
    type Ended;
    /// State of the calls while they are joined.
    #[doc(hidden)]
    type Slots;

    #[doc(hidden)]
    fn begin(self) -> Self::Slots;

    /// Returns the number of calls left and whether there is a reply.
    #[doc(hidden)]
    fn poll(slots: &mut Self::Slots, task: &mut Context<'_>) -> (usize, bool);

    #[doc(hidden)]
    fn ended(slots: Self::Slots) -> Self::Ended;

    #[doc(hidden)]
    fn outcomes(slots: Self::Slots) -> Self::Outcomes;
}

/// A call, later its outcome.
#[doc(hidden)]
#[derive(Debug)]
pub enum CallSlot<Reply> {
    Pending(Call<Reply>),
    Ended(Result<Reply, CallError>),
}

impl<Reply: Message> CallSlot<Reply> {
    fn poll(&mut self, task: &mut Context<'_>, (left, has_reply): (usize, bool)) -> (usize, bool) {
        if let Self::Pending(call) = self {
            let Poll::Ready(outcome) = call.poll_outcome(task) else { return (left + 1, has_reply) };
            *self = Self::Ended(outcome);
        }
        (left, has_reply || matches!(self, Self::Ended(Ok(_))))
    }

    fn ended(self) -> Option<Result<Reply, CallError>> {
        match self {
            Self::Pending(_) => None,
            Self::Ended(outcome) => Some(outcome),
        }
    }
}

macro_rules! calls {
    ($($reply:ident $at:tt),+) => {
        impl<$($reply: Message),+> Calls for ($(Call<$reply>,)+) {
            type Outcomes = ($(Result<$reply, CallError>,)+);
            type Ended = ($(Option<Result<$reply, CallError>>,)+);
            type Slots = ($(CallSlot<$reply>,)+);

            fn begin(self) -> Self::Slots {
                ($(CallSlot::Pending(self.$at),)+)
            }

            fn poll(slots: &mut Self::Slots, task: &mut Context<'_>) -> (usize, bool) {
                let mut polled = (0, false);
                $(polled = slots.$at.poll(task, polled);)+
                polled
            }

            fn ended(slots: Self::Slots) -> Self::Ended {
                ($(slots.$at.ended(),)+)
            }

            fn outcomes(slots: Self::Slots) -> Self::Outcomes {
                ($(slots.$at.ended().expect("it was polled to its end"),)+)
            }
        }
    };
}

calls!(A 0, B 1);
calls!(A 0, B 1, C 2);
calls!(A 0, B 1, C 2, D 3);
calls!(A 0, B 1, C 2, D 3, E 4);
calls!(A 0, B 1, C 2, D 3, E 4, F 5);
calls!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
calls!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

fn poll_all<Tuple: Calls>(slots: &mut Tuple::Slots, task: &mut Context<'_>) -> Poll<()> {
    if Tuple::poll(slots, task).0 == 0 { Poll::Ready(()) } else { Poll::Pending }
}

/// Waits for calls of several types on this thread. Returns the outcomes in order.
///
/// ```
/// use gapless_rpc::Domain;
/// use gapless_rpc::caller::together;
///
/// let domain = Domain::in_process("shop");
/// let _price = domain.serve("price").handle(|article: u64, _context| Ok(article * 3))?;
/// let _name = domain.serve("name").handle(|article: u64, _context| Ok(format!("article {article}")))?;
/// let (price, name) = (domain.caller::<u64, u64>("price")?, domain.caller::<u64, String>("name")?);
/// let (price, name) = together::all_of((price.start(7), name.start(7)));
/// assert_eq!((price?, name?), (21, "article 7".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn all_of<Tuple: Calls>(calls: Tuple) -> Tuple::Outcomes {
    block_on(all_of_async(calls))
}

/// Like [`all_of`], for a task.
pub async fn all_of_async<Tuple: Calls>(calls: Tuple) -> Tuple::Outcomes {
    let mut slots = calls.begin();
    poll_fn(|task| poll_all::<Tuple>(&mut slots, task)).await;
    Tuple::outcomes(slots)
}

/// Waits on this thread for `timeout` at most; later calls are cancelled and are `None`. A timeout beyond the clock's
/// range means none.
pub fn within_of<Tuple: Calls>(calls: Tuple, timeout: Duration) -> Tuple::Ended {
    let (deadline, mut slots) = (Instant::now().checked_add(timeout), calls.begin());
    let _ = block_on_until(poll_fn(|task| poll_all::<Tuple>(&mut slots, task)), deadline);
    Tuple::ended(slots)
}

/// Like [`within_of`], for a task.
pub async fn within_of_async<Tuple: Calls>(calls: Tuple, timeout: Duration) -> Tuple::Ended {
    let mut slots = calls.begin();
    in_time(timeout, |task| poll_all::<Tuple>(&mut slots, task)).await;
    Tuple::ended(slots)
}

/// Waits on this thread until one call has a reply, or all have ended without one. The others are cancelled and are
/// `None`.
pub fn first_of<Tuple: Calls>(calls: Tuple) -> Tuple::Ended {
    block_on(first_of_async(calls))
}

/// Like [`first_of`], for a task.
pub async fn first_of_async<Tuple: Calls>(calls: Tuple) -> Tuple::Ended {
    let mut slots = calls.begin();
    poll_fn(|task| match Tuple::poll(&mut slots, task) {
        (0, _) | (_, true) => Poll::Ready(()),
        (_, false) => Poll::Pending,
    })
    .await;
    Tuple::ended(slots)
}
