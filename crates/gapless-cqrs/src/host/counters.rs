//! [`CommandCounters`]: what the writer has counted, as the program reads it; in the counters of the stream others see the same.

use crate::envelope::Answered;
use crate::writer::{Failure, Ran};
use gapless_agent::{Counter, CounterView, Counters};

/// The counters, as fields beside the labels that users see.
macro_rules! counters {
    ($($(#[$of_field:meta])* $field:ident: $label:literal,)+) => {
        /// What a command bus has counted since its host was started; of a member, what it has decided as the one that leads. `gapless counters`
        /// shows the same, as `commands.accepted` and so on.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CommandCounters {
            $($(#[$of_field])* pub $field: u64,)+
        }

        /// The writer's end of them.
        pub(super) struct CountersOfWriter {
            $($field: Counter,)+
        }

        /// Reads them from any thread.
        #[derive(Clone)]
        pub(crate) struct CountersReader {
            $($field: CounterView,)+
        }

        impl CountersOfWriter {
            /// Adds them to the stream's.
            pub fn add_to(counters: &Counters) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add($label)?,)+ })
            }

            pub fn reader(&self) -> CountersReader {
                CountersReader { $($field: self.$field.view(),)+ }
            }
        }

        impl CountersReader {
            pub fn read(&self) -> CommandCounters {
                CommandCounters { $($field: self.$field.get(),)+ }
            }
        }
    };
}

counters! {
    /// Commands whose events are in the stream, or are on their way there.
    accepted: "commands.accepted",
    /// The events of these.
    events: "commands.events",
    /// Commands that an aggregate or a handler has refused.
    refused: "commands.refused",
    /// Commands that were refused by an interceptor.
    intercepted: "commands.intercepted",
    /// Commands whose aggregate did not exist.
    not_found: "commands.not_found",
    /// Commands whose aggregate existed already.
    already_exists: "commands.already_exists",
    /// Commands whose aggregate had another version than the expected one.
    conflicts: "commands.conflicts",
    /// Commands whose condition excluded an event that there was.
    conditions_failed: "commands.conditions_failed",
    /// Commands that had come before, by their identifiers: answered as then, and not counted as anything else.
    repeated: "commands.repeated",
    /// Commands under the identifier of another one.
    identifiers_reused: "commands.identifiers_reused",
    /// Commands for aggregates that are set apart.
    quarantined: "commands.quarantined",
    /// Commands whose bytes were none, or that nobody takes.
    malformed: "commands.malformed",
    /// Commands whose handler has panicked, or whose events could not be kept.
    failed: "commands.failed",
    /// How often a command was put off, because its aggregate had to be made of its events first.
    put_off: "commands.put_off",
    /// Aggregates in memory now.
    aggregates: "commands.aggregates",
    /// Aggregates that are being made of their events now.
    loading: "commands.aggregates_loading",
    /// Aggregates that were made of their events.
    loaded: "commands.aggregates_loaded",
    /// Aggregates that were set apart, since they could not be made.
    set_apart: "commands.aggregates_set_apart",
}

impl CountersOfWriter {
    /// What has become of a command; if it was answered, what the answer says, and how many events there are, unless it had come before.
    #[inline]
    pub fn count(&self, ran: Ran, answered: Option<(Answered, u32)>) {
        let counter = match (ran, answered) {
            (Ran::Answered, Some((Answered::Accepted, events))) => {
                self.events.add(events.into());
                &self.accepted
            }
            _ => self.of_others(ran, answered),
        };
        counter.add(1);
    }

    #[cold]
    const fn of_others(&self, ran: Ran, answered: Option<(Answered, u32)>) -> &Counter {
        match ran {
            Ran::Answered => match answered {
                Some((answered, _)) => self.of_answer(answered),
                None => &self.repeated,
            },
            Ran::Failed(Failure::Unknown | Failure::Malformed) => &self.malformed,
            Ran::Failed(Failure::Panicked | Failure::Inadmissible) => &self.failed,
            Ran::Later => &self.put_off,
        }
    }

    const fn of_answer(&self, answered: Answered) -> &Counter {
        match answered {
            Answered::Accepted => &self.accepted,
            Answered::Refused => &self.refused,
            Answered::NotFound => &self.not_found,
            Answered::AlreadyExists => &self.already_exists,
            Answered::Conflict => &self.conflicts,
            Answered::ConditionFailed => &self.conditions_failed,
            Answered::IdentifierReused => &self.identifiers_reused,
            Answered::Quarantined => &self.quarantined,
            Answered::Intercepted => &self.intercepted,
        }
    }

    /// An aggregate was made, or cannot be.
    pub fn count_loaded(&self, is_made: bool) {
        if is_made { &self.loaded } else { &self.set_apart }.add(1);
    }

    /// So many aggregates are in memory, and so many are being made.
    #[inline]
    pub fn note_aggregates(&self, in_memory: usize, loading: usize) {
        self.aggregates.set((in_memory - loading) as u64);
        self.loading.set(loading as u64);
    }
}
