//! [`Follower`]: the state of a service whose handlers ran before, as it follows the stream. While its member leads the state
//! is elsewhere and ahead; its changes are released one after the other, and nothing is applied twice.

use super::ahead::Ahead;
use super::exchange::{Back, Exchange, Lent, Span, Unreceived, Wish};
use super::{Make, State};
use crate::EngineError;
use crate::any_service::{AnyService, unhandled};
use crate::context::Context;
use crate::fold::{Fold, NoSink};
use crate::recovery::recover;
use crate::reject::Reject;
use crate::service::Refused;
use crate::sessions::SessionTable;
use crate::store::Limits;
use crate::store::snapshot::MAGIC;
use crate::timers::TimerTable;
use crate::transaction_layout::Read;
use gapless_agent::fault::mutant;
use gapless_agent::{Counter, CounterView, Counters, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_log::StreamIdentity;
use gapless_schema::Encoding;
use gapless_stream::Sequencer;
use gapless_stream::sequencer::SequencerRules;
use std::any::Any;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Where the state is.
enum Place {
    /// Here, as it is behind the last frame. In a cell because writing a snapshot marks what is written.
    Here(RefCell<Box<State>>),
    /// Here, and ahead of what is released.
    Ahead(Box<State>, Span),
    /// With the part that runs ahead.
    Lent(Wish),
}

pub(crate) struct Follower {
    make: Make,
    limits: Limits,
    place: Place,
    /// Hash of the state behind the last frame.
    hash: u64,
    counters: Option<StateCounters>,
    exchange: Option<Arc<Exchange>>,
    wish: Option<Wish>,
    /// A snapshot is due, for which the state has to be here.
    snapshot_waits: bool,
    /// Where its snapshots and its journal are.
    source: Option<(StreamLayout, StreamIdentity)>,
}

/// What others may know of a state.
struct StateCounters {
    /// Its hash behind the last frame that was handled.
    hash: Counter,
    /// How often it was made anew because what it was ahead by was cut.
    remade: Counter,
}

/// The same, for other threads.
pub(crate) struct StateViews {
    pub hash: CounterView,
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "nothing is cut without a cluster"))]
    pub remade: CounterView,
}

/// How often a state is made anew before it is given up: segments and snapshots may go while they are looked at.
const ATTEMPTS_MAX: u32 = 3;

impl Follower {
    pub fn new(make: Make, limits: Limits) -> Self {
        let state = Box::new(State::new(&make, limits));
        Self {
            make,
            limits,
            hash: state.store.state_hash(),
            place: Place::Here(RefCell::new(state)),
            counters: None,
            exchange: None,
            wish: None,
            snapshot_waits: false,
            source: None,
        }
    }

    pub fn set_source(&mut self, layout: StreamLayout, identity: StreamIdentity) {
        self.source = Some((layout, identity));
    }

    /// The part that runs ahead of this one, called by the agent that `leader` wakes.
    pub fn ahead(&mut self, leader: Waker) -> Ahead {
        let exchange = Arc::new(Exchange::new(leader));
        self.exchange = Some(Arc::clone(&exchange));
        Ahead::new(exchange)
    }

    /// From now on it is called by the agent that `waker` wakes, and tells in `counters` how the state stands.
    ///
    /// # Errors
    /// No room for its counters.
    pub fn attach(&mut self, waker: Waker, counters: &Counters) -> Result<StateViews, gapless_agent::Error> {
        if let Some(exchange) = &self.exchange {
            exchange.set_follower(waker);
        }
        let (hash, remade) = (counters.add("service.state_hash")?, counters.add("service.states_remade")?);
        let views = StateViews { hash: hash.view(), remade: remade.view() };
        hash.set(self.hash);
        self.counters = Some(StateCounters { hash, remade });
        Ok(views)
    }

    fn set_hash(&mut self, hash: u64) {
        self.hash = hash;
        if let Some(counters) = &self.counters {
            counters.hash.set(hash);
        }
    }

    #[cold]
    fn see_other(&mut self, sequence: u64) -> Result<(), EngineError> {
        let last_sequence = sequence - 1;
        if !self.catch_up(last_sequence) {
            if mutant("keep_cut_state")
                && let Place::Ahead(_, span) = &mut self.place
            {
                // What it is ahead by is taken for applied.
                span.at = last_sequence;
                self.catch_up(last_sequence);
                return Ok(());
            }
            self.reload(last_sequence)?;
        }
        Ok(())
    }

    /// Whether the state is here, as it is behind the last frame.
    fn catch_up(&mut self, last_sequence: u64) -> bool {
        if !matches!(&self.place, Place::Ahead(_, span) if span.at <= last_sequence) {
            return matches!(self.place, Place::Here(_));
        }
        let lent = Place::Lent(Wish { behind: last_sequence, term: 0 });
        if let Place::Ahead(state, _) = std::mem::replace(&mut self.place, lent) {
            self.place = Place::Here(RefCell::new(state));
        }
        true
    }

    /// Hands the state over where that is wanted, as it is behind the last frame.
    fn lend(&mut self, last_sequence: u64, timers: &TimerTable, sessions: &SessionTable) -> Result<(), EngineError> {
        let Some(wish) = self.wish.filter(|wish| wish.behind == last_sequence) else { return Ok(()) };
        if !self.catch_up(last_sequence) {
            // What it is ahead by was cut, or it never came back. A snapshot would wait for that for ever.
            self.reload(last_sequence)?;
        }
        if self.snapshot_waits {
            // It is taken first, and says so.
            return Ok(());
        }
        self.wish = None;
        if let Place::Here(state) = std::mem::replace(&mut self.place, Place::Lent(wish))
            && let Some(exchange) = &self.exchange
        {
            let (timers, notices) = (timers.clone(), Unreceived::of(sessions));
            let mut lent = Some(Lent { state: state.into_inner(), timers, notices, wish });
            // Who wished for it may have lost its lead meanwhile, and would never give it back.
            exchange.tell_leader(|slots| slots.lent = lent.take_if(|_| slots.wish == Some(wish)));
            if let Some(Lent { state, .. }) = lent {
                self.place = Place::Here(RefCell::new(state));
            }
        }
        Ok(())
    }

    #[inline]
    fn hear(&mut self) {
        let Some(mut slots) = self.exchange.as_ref().and_then(|exchange| exchange.news_for_follower()) else { return };
        let (wish, back) = (slots.wish, slots.back.take());
        drop(slots);
        self.wish = wish;
        let Some(Back { state, span }) = back else { return };
        // One that frames of another term have overtaken is of no use.
        if matches!(self.place, Place::Lent(wish) if wish.behind == span.from && wish.term == span.term) {
            self.place = Place::Ahead(state, span);
        }
    }

    /// Makes the state anew, as it is behind the frame `sequence`, which is released and journaled.
    #[cold]
    fn reload(&mut self, sequence: u64) -> Result<(), EngineError> {
        let mut attempt = 1;
        let state = loop {
            match self.remade(sequence) {
                Ok(state) => break state,
                Err(error) if attempt == ATTEMPTS_MAX => return Err(error),
                Err(error) => {
                    tracing::info!(%error, sequence, "a state that ran ahead is made anew once more");
                    attempt += 1;
                }
            }
        };
        self.set_hash(state.store.state_hash());
        self.place = Place::Here(RefCell::new(state));
        if let Some(counters) = &self.counters {
            counters.remade.add(1);
        }
        tracing::info!(sequence, "a state that ran ahead of what is released was made anew");
        Ok(())
    }

    fn remade(&self, sequence: u64) -> Result<Box<State>, EngineError> {
        let mut fold = Fold::of_transactions(Box::new(Self::new(Arc::clone(&self.make), self.limits)));
        if sequence > 0 {
            let corrupt = |reason: String| EngineError::Corrupt { sequence, reason };
            let (layout, identity) = self.source.as_ref().ok_or_else(|| corrupt("no journal is known".to_owned()))?;
            let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
            let recovered = recover(layout, *identity, &mut fold, &mut sequencer, (&mut NoSink, None), sequence)?;
            if recovered.last_sequence != sequence {
                return Err(corrupt(format!("the state comes to {}, not to there", recovered.last_sequence)));
            }
        }
        let Place::Here(state) =
            std::mem::replace(&mut Self::of(&mut fold).place, Place::Lent(Wish { behind: 0, term: 0 }))
        else {
            unreachable!("nobody has it lent")
        };
        Ok(state.into_inner())
    }

    /// The one that `fold` was made of.
    ///
    /// # Panics
    /// If it was made of something else.
    pub fn of(fold: &mut Fold) -> &mut Self {
        Self::in_fold(fold).expect("the fold was made of a follower")
    }

    /// That of a fold which applies transactions.
    pub fn in_fold(fold: &mut Fold) -> Option<&mut Self> {
        let service: &mut dyn Any = &mut *fold.service;
        service.downcast_mut()
    }
}

impl AnyService for Follower {
    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn takes(&self, _: u32, _: Encoding) -> bool {
        false
    }

    fn handle(&mut self, schema: u32, encoding: Encoding, _: &[u8], _: &mut Context<'_>) -> Result<(), Refused> {
        Err(unhandled(schema, encoding))
    }

    fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        Ok(())
    }

    fn is_of_transactions(&self) -> bool {
        true
    }

    // A frame of another term than those that the state is ahead by: they were cut, and it is not the state any more.
    #[inline]
    fn see(&mut self, sequence: u64, term: u64) -> Result<(), EngineError> {
        match &self.place {
            Place::Here(_) => Ok(()),
            Place::Lent(wish) if sequence <= wish.behind || term == wish.term => Ok(()),
            Place::Ahead(_, span) if sequence <= span.at && term == span.term => Ok(()),
            _ => self.see_other(sequence),
        }
    }

    fn apply(&mut self, sequence: u64, read: &Read<'_>) -> Result<(), String> {
        let Place::Here(state) = &mut self.place else {
            // It is in the state already.
            self.set_hash(read.hash);
            return Ok(());
        };
        let State { store, layout, .. } = &mut **state.get_mut();
        if !read.changes.is_empty() {
            store.apply(read.changes).map_err(|error| error.to_string())?;
        }
        let hash = store.state_hash();
        if *layout == read.layout && hash != read.hash {
            return Err(format!(
                "the state behind it has hash {hash:016x} here, {:016x} where frame {sequence} was made: this copy \
                 differs since then; start it anew with an empty directory",
                read.hash
            ));
        }
        self.set_hash(hash);
        Ok(())
    }

    fn attend(&mut self, last_sequence: u64, timers: &TimerTable, sessions: &SessionTable) -> Result<(), EngineError> {
        self.hear();
        self.lend(last_sequence, timers, sessions)
    }

    fn can_snapshot(&mut self, last_sequence: u64, is_final: bool) -> Result<bool, EngineError> {
        if !self.catch_up(last_sequence) {
            if is_final && matches!(self.place, Place::Ahead(..)) {
                // Nobody will say any more what became of what it is ahead by.
                self.reload(last_sequence)?;
            } else {
                if let (Place::Lent(_), false, Some(exchange)) = (&self.place, self.snapshot_waits, &self.exchange) {
                    exchange.tell_leader(|slots| slots.is_recalled = true);
                }
                self.snapshot_waits = true;
                return Ok(false);
            }
        }
        if std::mem::take(&mut self.snapshot_waits)
            && let Some(exchange) = &self.exchange
        {
            // Who waits for the state gets it in the next turn.
            exchange.tell_follower(|_| {});
        }
        Ok(true)
    }

    fn snapshot(&self, out: &mut Vec<u8>) {
        let Place::Here(state) = &self.place else { unreachable!("a snapshot is asked for where it can be taken") };
        state.borrow_mut().store.write_snapshot(out).expect("memory takes it, and no other snapshot is under way");
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Place::Here(state) = &mut self.place else { return Err("the state is lent".to_owned()) };
        if !bytes.starts_with(&MAGIC) {
            return Err("it is of an event-sourced service, and this one is state-replicated".to_owned());
        }
        let store = &mut state.get_mut().store;
        let mut rest = bytes;
        store.read_snapshot(&mut rest).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err(format!("{} bytes behind the state", rest.len()));
        }
        let hash = store.state_hash();
        self.set_hash(hash);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::super::{StateHandlers, StateService, make_of};
    use super::*;
    use crate::store::Store;
    use gapless_stream::transactions::Transactions;

    struct Nothing;

    impl StateService for Nothing {
        fn handlers(_: &mut StateHandlers<Self>) {}
    }

    #[test]
    fn a_state_that_is_wanted_no_more_stays_here() {
        let mut follower = Follower::new(make_of(|_: &mut Store| Nothing), Limits::default());
        let mut ahead = follower.ahead(Waker::new().unwrap());
        let mut fold = Fold::of_transactions(Box::new(follower));
        ahead.lead(1, 0);
        Follower::of(&mut fold).hear();
        // The lead is lost while the state is made ready.
        ahead.follow(0);
        let (timers, sessions) = (fold.timers.clone(), SessionTable::default());
        Follower::of(&mut fold).lend(0, &timers, &sessions).unwrap();
        assert!(fold.can_snapshot(true).unwrap(), "a clean stop waits for nobody");

        ahead.lead(2, 0);
        fold.attend().unwrap();
        assert!(ahead.poll(0), "the next time it is handed over");
        assert!(!fold.can_snapshot(true).unwrap());
        ahead.follow(0);
        fold.attend().unwrap();
        assert!(fold.can_snapshot(true).unwrap());
    }

    #[test]
    fn a_snapshot_that_waits_for_what_is_cut_keeps_nobody_from_the_state() {
        let mut follower = Follower::new(make_of(|_: &mut Store| Nothing), Limits::default());
        let mut ahead = follower.ahead(Waker::new().unwrap());
        let mut fold = Fold::of_transactions(Box::new(follower));
        ahead.lead(1, 0);
        fold.attend().unwrap();
        assert!(ahead.poll(0));
        // A snapshot is due, and the state is eight frames ahead.
        assert!(!fold.can_snapshot(false).unwrap());
        assert!(!ahead.poll(8));
        fold.attend().unwrap();
        assert!(!fold.can_snapshot(false).unwrap(), "they are not released");
        // They are cut, and the member leads again.
        ahead.follow(8);
        ahead.lead(2, 0);
        fold.attend().unwrap();
        assert!(fold.can_snapshot(false).unwrap(), "the state is as it was before them");
        fold.attend().unwrap();
        assert!(ahead.poll(0), "and goes to who leads");
    }
}
