//! `CommandCounters`: counters of the writer, for the program itself.

use crate::envelope::AnswerKind;
use crate::writer::{RunFailure, RunResult};
use gapless_agent::{Counter, CounterView, Counters};

macro_rules! counters {
    ($($(#[$of_field:meta])* $field:ident: $label:literal,)+) => {
        /// Counters since the start of the host, also shown by `gapless counters`; on a member, of commands that it
        /// decided as leader.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CommandCounters {
            $($(#[$of_field])* pub $field: u64,)+
        }

        pub(super) struct WriterCounters {
            $($field: Counter,)+
        }

        #[derive(Clone)]
        pub(crate) struct CommandCountersReader {
            $($field: CounterView,)+
        }

        impl WriterCounters {
            /// Adds the counters.
            pub fn add_to(counters: &Counters) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add($label)?,)+ })
            }

            pub fn reader(&self) -> CommandCountersReader {
                CommandCountersReader { $($field: self.$field.view(),)+ }
            }
        }

        impl CommandCountersReader {
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
    aggregates_quarantined: "commands.aggregates_quarantined",
}

impl WriterCounters {
    /// Counts a run; `kind` is `None` for a duplicate.
    #[inline]
    pub fn count(&self, result: RunResult, kind: Option<(AnswerKind, u32)>) {
        let counter = match (result, kind) {
            (RunResult::Answered, Some((AnswerKind::Accepted, events))) => {
                self.events.add(events.into());
                &self.accepted
            }
            _ => self.counter_of_result(result, kind),
        };
        counter.add(1);
    }

    #[cold]
    const fn counter_of_result(&self, result: RunResult, kind: Option<(AnswerKind, u32)>) -> &Counter {
        match result {
            RunResult::Answered => match kind {
                Some((kind, _)) => self.counter_of_answer(kind),
                None => &self.repeated,
            },
            RunResult::Failed(RunFailure::Unknown | RunFailure::Malformed) => &self.malformed,
            RunResult::Failed(RunFailure::Panicked | RunFailure::Inadmissible) => &self.failed,
            RunResult::Later => &self.put_off,
        }
    }

    const fn counter_of_answer(&self, kind: AnswerKind) -> &Counter {
        match kind {
            AnswerKind::Accepted => &self.accepted,
            AnswerKind::Refused => &self.refused,
            AnswerKind::NotFound => &self.not_found,
            AnswerKind::AlreadyExists => &self.already_exists,
            AnswerKind::Conflict => &self.conflicts,
            AnswerKind::ConditionFailed => &self.conditions_failed,
            AnswerKind::IdentifierReused => &self.identifiers_reused,
            AnswerKind::Quarantined => &self.quarantined,
            AnswerKind::Intercepted => &self.intercepted,
        }
    }

    /// Counts a load.
    pub fn count_loaded(&self, is_loaded: bool) {
        if is_loaded { &self.loaded } else { &self.aggregates_quarantined }.add(1);
    }

    #[inline]
    pub fn note_aggregates(&self, in_memory: usize, loading: usize) {
        self.aggregates.set((in_memory - loading) as u64);
        self.loading.set(loading as u64);
    }
}
