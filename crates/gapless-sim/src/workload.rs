//! [`Workload`]: a publishing process, for each kind of cluster: a node of an event stream, or a client of a service.

use crate::checker::Violation;
use crate::random::Random;
use crate::reference::ReferenceAnswers;
use crate::system_under_test::SystemUnderTest;
use gapless_client::client::MessageType;
use gapless_stream::event_stream::EventStream;

pub(crate) trait Workload<A> {
    /// Kills and restarts the process; only its token survives.
    fn restart(&mut self);

    /// Returns whether all its messages are acknowledged.
    fn is_done(&self) -> bool;

    /// Returns whether it looks for a member.
    fn is_searching(&self) -> bool;

    /// Returns the sequence of the message whose reply or notice is wrong.
    fn mismatch_sequence(&self) -> Option<u64> {
        None
    }

    /// Returns the member that it is connected to.
    fn connected_member(&self) -> Option<u64>;

    /// Connects it to a member.
    fn connect_to(&mut self, member: u64, stream: &EventStream) -> Result<(), Violation>;

    /// Disconnects it from a member that is gone.
    fn disconnect(&mut self);

    /// Publishes messages as allowed, and checks received ones against the service's `answers`. Returns the number of
    /// received ones.
    fn poll(
        &mut self,
        now_ns: u64,
        application: &A,
        answers: &ReferenceAnswers,
        random: &mut Random,
    ) -> Result<usize, Violation>;

    /// Returns the number of messages that are acknowledged for good.
    fn acknowledged(&self) -> u64;

    /// Returns the number of answered repeat requests.
    fn repeated(&self) -> u64 {
        0
    }

    /// Returns the number of answered queries after restarts, about commands of earlier lives.
    fn resolved(&self) -> u64 {
        0
    }

    /// Describes its state for a report.
    fn describe(&self) -> String;
}

/// Generates a message, the same for the same arguments.
pub(crate) fn message_of(
    application: &impl SystemUnderTest,
    seed: u64,
    publisher: u64,
    index: u64,
) -> (MessageType, Vec<u8>) {
    application.message(publisher, index, &mut Random::of(seed, &[7, publisher, index]))
}
