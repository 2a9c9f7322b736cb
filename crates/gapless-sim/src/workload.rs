//! [`Workload`]: a process that publishes, for each kind of cluster: a node of an event stream, or a client of a
//! service.

use crate::checker::Broken;
use crate::random::Random;
use crate::reference::Answers;
use crate::system_under_test::SystemUnderTest;
use gapless_client::client::MessageType;
use gapless_stream::event_stream::EventStream;

pub(crate) trait Workload<A> {
    /// Its process dies and is started again: it knows nothing but its token.
    fn restart(&mut self);

    /// Whether everything that it has to publish is acknowledged.
    fn is_done(&self) -> bool;

    /// Whether it looks for a member.
    fn is_searching(&self) -> bool;

    /// The sequence of the message whose reply or notice is not right.
    fn complained_at(&self) -> Option<u64> {
        None
    }

    /// The member that it is connected to.
    fn at(&self) -> Option<u64>;

    /// It may connect there.
    fn let_in(&mut self, member: u64, stream: &EventStream) -> Result<(), Broken>;

    /// The member that it was connected to is gone.
    fn lose(&mut self);

    /// Publishes the messages that it may, and takes received ones, checked against the service's `answers`. Returns
    /// how much came.
    fn poll(&mut self, now_ns: u64, application: &A, answers: &Answers, random: &mut Random) -> Result<usize, Broken>;

    /// Messages that are acknowledged for ever.
    fn acknowledged(&self) -> u64;

    /// Messages that it has asked for once more, and been answered.
    fn repeated(&self) -> u64 {
        0
    }

    /// Answers to its queries, after a restart, about commands of its earlier lives.
    fn resolved(&self) -> u64 {
        0
    }

    /// How it stands, for people.
    fn describe(&self) -> String;
}

/// The same whenever it is asked for.
pub(crate) fn message_of(
    application: &impl SystemUnderTest,
    seed: u64,
    publisher: u64,
    index: u64,
) -> (MessageType, Vec<u8>) {
    application.message(publisher, index, &mut Random::of(seed, &[7, publisher, index]))
}
