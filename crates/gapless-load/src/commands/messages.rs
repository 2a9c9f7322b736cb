//! A counter whose commands and events carry a note of any length, in two encodings. `gapless schema generate
//! commands.xml --output generated` generates the SBE code; a test compares them.

use gapless_cqrs::{Aggregate, Creation, Decision, Message};
use gapless_schema::Sbe;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

// A build script would compile generator and parser twice, for the build and for the program.
include!("generated/commands.rs");

use commands::{AddCommand, AddedEvent};

pub trait CommandForm: 'static {
    type Command: Message;
    type Event: Message;

    fn command(amount: u64, note: &str) -> Self::Command;
    fn event(command: Self::Command) -> Self::Event;
    fn amount(event: &Self::Event) -> u64;
}

pub struct SerdeForm;

pub struct SbeForm;

#[derive(Serialize, Deserialize, Message)]
pub struct Add {
    amount: u64,
    note: String,
}

#[derive(Serialize, Deserialize, Message)]
pub struct Added {
    amount: u64,
    note: String,
}

impl CommandForm for SerdeForm {
    type Command = Add;
    type Event = Added;

    #[inline]
    fn command(amount: u64, note: &str) -> Add {
        Add { amount, note: note.to_owned() }
    }

    #[inline]
    fn event(command: Add) -> Added {
        Added { amount: command.amount, note: command.note }
    }

    #[inline]
    fn amount(event: &Added) -> u64 {
        event.amount
    }
}

impl CommandForm for SbeForm {
    type Command = Sbe<AddCommand>;
    type Event = Sbe<AddedEvent>;

    #[inline]
    fn command(amount: u64, note: &str) -> Sbe<AddCommand> {
        Sbe(AddCommand { amount, note: note.to_owned() })
    }

    #[inline]
    fn event(command: Sbe<AddCommand>) -> Sbe<AddedEvent> {
        Sbe(AddedEvent { amount: command.0.amount, note: command.0.note })
    }

    #[inline]
    fn amount(event: &Sbe<AddedEvent>) -> u64 {
        event.0.amount
    }
}

pub struct Counter<F> {
    sum: u64,
    form: PhantomData<fn() -> F>,
}

impl<F> Clone for Counter<F> {
    fn clone(&self) -> Self {
        Self { sum: self.sum, form: PhantomData }
    }
}

impl<F: CommandForm> Aggregate for Counter<F> {
    const NAME: &'static str = "counter";
    type Id = u64;
    type Command = F::Command;
    type Event = F::Event;
    type Refusal = ();

    fn new(_: &u64) -> Self {
        Self { sum: 0, form: PhantomData }
    }

    #[inline]
    fn creation(_: &F::Command) -> Creation {
        Creation::CreatesIfMissing
    }

    #[inline]
    fn decide(&self, command: F::Command, decision: &mut Decision<'_, F::Event>) -> Result<(), ()> {
        decision.emit(F::event(command));
        Ok(())
    }

    #[inline]
    fn apply(&mut self, event: &F::Event) {
        self.sum = self.sum.wrapping_add(F::amount(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn generated_source_is_current() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
        let generator = gapless_schema::generate::Generator::new();
        let generated = generator.schema_file(place.join("commands.xml")).generate().unwrap();
        let committed = std::fs::read_to_string(place.join("generated/commands.rs")).unwrap();
        assert!(
            committed == generated.rust,
            "run `gapless schema generate commands.xml --output generated` in {place:?}"
        );
    }

    fn round_trips<F: CommandForm>() {
        let event = F::event(F::command(7, "a note"));
        let mut bytes = Vec::new();
        event.encode(&mut bytes).unwrap();
        assert!(bytes.windows(6).any(|part| part == b"a note"));
        assert_eq!(F::amount(&F::Event::decode(&bytes).unwrap()), 7);
    }

    #[test]
    fn event_round_trips() {
        round_trips::<SerdeForm>();
        round_trips::<SbeForm>();
    }
}
