//! A client that reopens a session learns its next number by released frames only. A member whose service lags reports
//! the same.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::{Agent, Counters, Now, Waker};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::dead_letters::DeadLetters;
use gapless_engine::executor::{Executor, ExecutorCounters, ExecutorLinks, ReplyDelivery, StopPosition};
use gapless_engine::recovery::RecoverySummary;
use gapless_engine::{Context, Fold, Handlers, Policy, Reject, Service};
use gapless_log::{GatingCursor, Releaser, Scope, StreamIdentity, Window, WindowOptions};
use gapless_schema::Encoding;
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::egress::Egress;
use gapless_stream::ingress::{IngressCounters, IngressLinks};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{Acceptor, Ingress, IngressOptions, Sequencer};
use gapless_transport::Tier;
use gapless_transport::mailbox::Mailbox;

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const TOKEN: u128 = 9;

struct Echo;

impl Echo {
    fn echo(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        context.reply_with(TYPE, payload)
    }
}

impl Service for Echo {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TYPE.schema, Self::echo);
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

struct Member {
    ingress: Ingress,
    executor: Executor,
    window: Window,
    releaser: Releaser,
    appended: GatingCursor,
    acceptor: Acceptor,
}

impl Member {
    fn new() -> Self {
        let identity = StreamIdentity { stream_id: 5, incarnation: 1 };
        let options = WindowOptions { frame_length_max: 1024, identity, ..WindowOptions::default() };
        let (mut writer, releaser) = options.create(1).unwrap();
        let (window, appended) = (writer.window(), writer.gating_cursor(Scope::Appended));
        let released = writer.gating_cursor(Scope::Released);
        let counters = Counters::in_memory(32).unwrap();
        let (publishers, answers, requests) = (Mailbox::new(64), Mailbox::new(4096), Mailbox::new(64));
        let delivery = Mailbox::new(64);
        let acceptor_links = AcceptorLinks {
            ingress: publishers.clone(),
            egress: delivery.clone(),
            ingress_waker: Waker::new().unwrap(),
            egress_waker: Waker::new().unwrap(),
        };
        let description = StreamDescription {
            identity,
            frame_length_max: 1024,
            message_length_max: 4096,
            tier: Tier::Quorum,
            mtu: None,
        };
        let acceptor = Acceptor::start(None, description, acceptor_links, None, None, None).unwrap();
        let links = IngressLinks {
            publishers,
            service: answers.clone(),
            requests: requests.clone(),
            downstream: Vec::new(),
            counters: IngressCounters::add_to(&counters).unwrap(),
        };
        let sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
        let ingress = Ingress::new(sequencer, writer, None, links, IngressOptions::default());
        let links = ExecutorLinks {
            record: None,
            cursor: released,
            window: window.clone(),
            stop_at: StopPosition::Released,
            delivery: ReplyDelivery::Direct(Egress::new(delivery, 1024)),
            sequencer: requests,
            sequencer_waker: gapless_agent::Waker::new().unwrap(),
            from_sequencer: answers,
            dead_letters: DeadLetters::counting(),
            snapshots: None,
            state_hasher: None,
            frames_per_poll_max: 16,
            counters: ExecutorCounters::add_to(&counters, &RecoverySummary::default()).unwrap(),
        };
        let executor = Executor::new(Fold::new(Echo, Policy::default()), links);
        Self { ingress, executor, window, releaser, appended, acceptor }
    }

    fn connect(&self) -> PolledClient {
        self.acceptor.client(ClientOptions::default()).unwrap()
    }

    fn turn(&mut self) {
        let now = Now { monotonic_ns: 1_000, epoch_ns: 1_000 };
        self.ingress.poll(now).unwrap();
        self.executor.poll(now).unwrap();
    }

    fn release(&mut self) {
        self.releaser.release(self.window.appended(), self.window.appended_sequence());
    }
}

fn opened(client: &mut PolledClient, session: SessionKey) -> Option<u64> {
    let mut is_opened = false;
    client
        .poll(64, |incoming| match incoming {
            Incoming::Opened { session: found } => is_opened = found == session,
            Incoming::Reply { .. } => {}
            other => panic!("{other:?}"),
        })
        .unwrap();
    is_opened.then(|| client.next_session_seq(session).unwrap())
}

fn leader() -> (Member, PolledClient) {
    let mut member = Member::new();
    member.ingress.lead(1).unwrap();
    let mut client = member.connect();
    let session = client.begin_session(TOKEN, 16).unwrap();
    member.turn();
    assert_eq!(opened(&mut client, session), None, "the open is not released");
    member.release();
    member.turn();
    assert_eq!(opened(&mut client, session), Some(1));
    client.send(session, TYPE, 0, |_| Ok(0)).unwrap();
    member.turn();
    assert_eq!(member.ingress.last_sequence(), 2);
    (member, client)
}

#[test]
fn open_reports_released_number() {
    let (mut member, _client) = leader();
    let mut successor = member.connect();
    let session = successor.begin_session(TOKEN, 16).unwrap();
    for _ in 0..3 {
        member.turn();
        assert_eq!(opened(&mut successor, session), None, "command 1 is not released");
    }
    member.release();
    member.turn();
    assert_eq!(opened(&mut successor, session), Some(2));

    successor.send(session, TYPE, 0, |_| Ok(0)).unwrap();
    member.turn();
    let mut third = member.connect();
    let session = third.begin_session(TOKEN, 16).unwrap();
    member.turn();
    member.ingress.follow(Some("elsewhere"));
    member.turn();
    member.release();
    member.turn();
    assert!(third.poll(64, |incoming| panic!("{incoming:?}")).is_err(), "the client is redirected");
    assert_eq!(third.next_session_seq(session), None);
}

#[test]
fn lagging_member_reports_the_same() {
    let (mut leader, mut client) = leader();
    leader.release();
    leader.turn();
    assert_eq!(client.poll(64, |incoming| assert!(matches!(incoming, Incoming::Reply { .. }))).unwrap(), 1);
    let frames = leader.appended.available().unwrap().to_vec();

    let mut next = Member::new();
    next.ingress.follow(None);
    assert_eq!(next.ingress.append_followed(&frames).unwrap(), frames.len());
    next.ingress.publish();
    next.ingress.lead(2).unwrap();
    let mut client = next.connect();
    let session = client.begin_session(TOKEN, 16).unwrap();
    next.turn();
    assert_eq!(opened(&mut client, session), None, "the member has handled none of the frames");
    next.release();
    next.turn();
    next.turn();
    assert_eq!(opened(&mut client, session), Some(2));
}
