//! [`CommandCounters`]: counters of the writer, for the program itself. Other processes see the same in the counters of
//! the stream.

use crate::envelope::Answered;
use crate::writer::{Failure, Ran};
use gapless_agent::{Counter, CounterView, Counters};

/// Defines the counters, each as a field and the label that users see.
macro_rules! counters {
    ($($(#[$of_field:meta])* $field:ident: $label:literal,)+) => {
        /// Counters of a command bus since the start of its host; on a member, of commands that it decided as leader.
        /// `gapless counters` shows the same, as `commands.accepted` and so on.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CommandCounters {
            $($(#[$of_field])* pub $field: u64,)+
        }

        /// The writer's end of the counters.
        pub(super) struct CountersOfWriter {
            $($field: Counter,)+
        }

        /// Reads the counters from any thread.
        #[derive(Clone)]
        pub(crate) struct CountersReader {
            $($field: CounterView,)+
        }

        impl CountersOfWriter {
            /// Adds the counters to those of the stream.
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
    /// Accepted commands, whose events are in the stream or on their way there.
    accepted: "commands.accepted",
    /// Events of accepted commands.
    events: "commands.events",
    /// Commands refused by an aggregate or a handler.
    refused: "commands.refused",
    /// Commands refused by an interceptor.
    intercepted: "commands.intercepted",
    /// Commands whose aggregate did not exist.
    not_found: "commands.not_found",
    /// Commands whose aggregate existed already.
    already_exists: "commands.already_exists",
    /// Commands whose aggregate had another version than expected.
    conflicts: "commands.conflicts",
    /// Commands whose condition excluded an existing event.
    conditions_failed: "commands.conditions_failed",
    /// Duplicates, by their identifiers. They get the first answer, and are not counted as anything else.
    repeated: "commands.repeated",
    /// Commands with the identifier of another command.
    identifiers_reused: "commands.identifiers_reused",
    /// Commands for quarantined aggregates.
    quarantined: "commands.quarantined",
    /// Commands that did not decode, or that the model does not know.
    malformed: "commands.malformed",
    /// Commands whose handler has panicked, or whose events could not be kept.
    failed: "commands.failed",
    /// Commands put off because their aggregate had to be loaded first, each time counted.
    put_off: "commands.put_off",
    /// Aggregates in memory now.
    aggregates: "commands.aggregates",
    /// Aggregates being loaded now.
    loading: "commands.aggregates_loading",
    /// Aggregates loaded from their events.
    loaded: "commands.aggregates_loaded",
    /// Aggregates that could not be loaded, and were quarantined.
    set_apart: "commands.aggregates_set_apart",
}

impl CountersOfWriter {
    /// Counts a run: by its answer, if it has one. `answered` is `None` for a duplicate.
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

    /// Counts a load.
    pub fn count_loaded(&self, is_made: bool) {
        if is_made { &self.loaded } else { &self.set_apart }.add(1);
    }

    #[inline]
    pub fn note_aggregates(&self, in_memory: usize, loading: usize) {
        self.aggregates.set((in_memory - loading) as u64);
        self.loading.set(loading as u64);
    }
}
