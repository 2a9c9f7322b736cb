#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::{Agent, Clock, Counters, Waker};
use gapless_log::{MemoryKind, StreamIdentity, WindowOptions};
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::egress::Egress;
use gapless_stream::ingress::{IngressCounters, IngressLinks};
use gapless_stream::responder::Responder;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{Acceptor, Ingress, IngressOptions, Sequencer};
use gapless_transport::Tier;
use gapless_transport::mailbox::Mailbox;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const FRAME_LENGTH_MAX: usize = 4096;

pub struct Follower {
    stopped: Arc<AtomicBool>,
    leads: Arc<AtomicBool>,
    turned_away: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    pub fn start(socket: &Path, identity: StreamIdentity, leader: Option<&str>) -> Self {
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let (stopped, turned_away) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let options = WindowOptions { memory: MemoryKind::Shared, identity, ..WindowOptions::default() };
        let (writer, mut releaser) = options.create(1).unwrap();
        let window = writer.window();
        let counters = Counters::in_memory(16).unwrap();
        let (publishers, service, delivery) = (Mailbox::new(64), Mailbox::new(4096), Mailbox::new(64));
        let acceptor_links = AcceptorLinks {
            ingress: publishers.clone(),
            egress: delivery.clone(),
            ingress_waker: Waker::new().unwrap(),
            egress_waker: Waker::new().unwrap(),
        };
        let description = StreamDescription {
            identity,
            frame_length_max: FRAME_LENGTH_MAX,
            message_length_max: 1 << 20,
            tier: Tier::Quorum,
            mtu: None,
        };
        let acceptor =
            Acceptor::start(Some(socket), description, acceptor_links, Some(window.clone()), None, None).unwrap();
        let links = IngressLinks {
            publishers,
            service: service.clone(),
            requests: Mailbox::new(64),
            downstream: Vec::new(),
            counters: IngressCounters::add_to(&counters).unwrap(),
        };
        let sequencer = Sequencer::new(SequencerRules::of_stream(u64::MAX));
        let mut ingress = Ingress::new(sequencer, writer, None, links, IngressOptions::default());
        ingress.follow(leader);
        let mut responder = Responder::new(service, Egress::new(delivery, FRAME_LENGTH_MAX), window.clone());
        let leads = Arc::<AtomicBool>::default();
        let thread_leads = Arc::clone(&leads);
        let (thread_stopped, count) = (Arc::clone(&stopped), Arc::clone(&turned_away));
        let thread = std::thread::spawn(move || {
            let (_acceptor, clock) = (acceptor, Clock::fastest().0);
            while !thread_stopped.load(Ordering::Relaxed) {
                if thread_leads.load(Ordering::Relaxed) && ingress.is_following() {
                    assert_eq!(ingress.last_sequence(), 0, "a follower appends nothing of its own");
                    ingress.lead(1).unwrap();
                }
                ingress.poll(clock.now()).unwrap();
                releaser.release(window.appended(), window.appended_sequence());
                let answered = responder.poll(clock.now()).unwrap() as u64;
                count.fetch_add(answered * u64::from(ingress.is_following()), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(200));
            }
            let is_first = ingress.last_sequence() == 0;
            assert!(is_first || !ingress.is_following(), "a follower appends nothing of its own");
        });
        Self { stopped, leads, turned_away, thread: Some(thread) }
    }

    pub fn lead(&self) {
        self.leads.store(true, Ordering::Relaxed);
    }

    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the follower has failed");
    }
}
