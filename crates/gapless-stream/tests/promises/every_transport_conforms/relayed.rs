//! The suite through a dispatcher, and through two bridges in a row.

use super::tcp::Tcp;
use super::udp::Udp;
use super::world::World;
use gapless_client::node::{SharedMemoryLink, SharedMemoryOptions, Start, TcpLink, TcpOptions};
use gapless_client::throttle::Throttle;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

pub struct DispatchedWorld {
    origin: Udp<0>,
    throttle: Option<Throttle>,
    directory: TempDir,
    relay: Option<EventStream>,
    restarts: u32,
}

fn options(directory: &Path) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    options.window_bytes = 8 << 20;
    options.message_length_max = 2 << 20;
    options.frame_length_max = 1_376;
    options
}

impl DispatchedWorld {
    fn start_relay(&mut self) {
        let link = Box::new(self.origin.link());
        let mut options = options(self.directory.path());
        options.throttle = self.throttle;
        let relay = EventStream::relay(&options, link, Start::First, &AtomicBool::new(false));
        self.relay = Some(relay.unwrap());
    }
}

impl World for DispatchedWorld {
    type Link = SharedMemoryLink;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let mut changed = options(Path::new("nowhere"));
        change(&mut changed);
        // Otherwise the sequencer would throttle all nodes of a dispatcher as one.
        let origin = Udp::start(move |options| {
            change(options);
            options.throttle = None;
        });
        let directory = tempfile::tempdir().unwrap();
        let mut world = Self { origin, throttle: changed.throttle, directory, relay: None, restarts: 0 };
        world.start_relay();
        world
    }

    fn link(&mut self) -> SharedMemoryLink {
        SharedMemoryLink::new(self.directory.path(), SharedMemoryOptions::default())
    }

    fn stream(&self) -> &EventStream {
        self.origin.stream()
    }

    fn restart(&mut self) {
        self.restarts += 1;
        if self.restarts % 3 != 1 {
            self.relay = None;
        }
        if self.restarts % 3 != 2 {
            self.origin.restart();
        }
        if self.relay.is_none() {
            self.start_relay();
        }
    }

    fn lift_throttle(&mut self) {
        self.throttle = None;
        self.relay = None;
        self.start_relay();
    }

    fn turn(&mut self) {
        if let Some(failure) = self.relay.as_ref().and_then(EventStream::failure) {
            panic!("the dispatcher has failed: {failure}");
        }
    }
}

mod dispatched {
    crate::every_transport_conforms::suite::conformance!(super::DispatchedWorld);
}

pub struct BridgedWorld {
    origin: Tcp,
    near: Bridge,
    far: Bridge,
    restarts: u32,
}

struct Bridge {
    directory: TempDir,
    network: TcpNetwork,
    throttle: Option<Throttle>,
    relay: Option<EventStream>,
}

impl Bridge {
    fn new(throttle: Option<Throttle>) -> Self {
        let any_port = SocketAddr::from((own_loopback(), 0));
        let network = TcpNetwork::new(any_port, any_port);
        Self { directory: tempfile::tempdir().unwrap(), network, throttle, relay: None }
    }

    fn start(&mut self, upstream: TcpLink) {
        let mut options = options(self.directory.path());
        options.tcp = Some(self.network.clone());
        options.throttle = self.throttle;
        let relay = EventStream::relay(&options, Box::new(upstream), Start::First, &AtomicBool::new(false)).unwrap();
        let addresses = relay.tcp_addresses().unwrap();
        (self.network.command, self.network.rewind) = (addresses.command, addresses.rewind);
        self.relay = Some(relay);
    }

    fn link(&self) -> TcpLink {
        TcpLink::new(TcpOptions::new(self.network.command, self.network.rewind))
    }
}

impl World for BridgedWorld {
    type Link = TcpLink;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let mut changed = options(Path::new("nowhere"));
        change(&mut changed);
        let mut origin = Tcp::start(move |options| {
            change(options);
            options.throttle = None;
        });
        let (mut near, mut far) = (Bridge::new(None), Bridge::new(changed.throttle));
        near.start(origin.link());
        far.start(near.link());
        Self { origin, near, far, restarts: 0 }
    }

    fn link(&mut self) -> TcpLink {
        self.far.link()
    }

    fn stream(&self) -> &EventStream {
        self.origin.stream()
    }

    fn restart(&mut self) {
        self.restarts += 1;
        match self.restarts % 3 {
            1 => self.origin.restart(),
            2 => {
                self.near.relay = None;
                self.near.start(self.origin.link());
            }
            _ => {
                self.far.relay = None;
                self.far.start(self.near.link());
            }
        }
    }

    fn lift_throttle(&mut self) {
        (self.far.throttle, self.far.relay) = (None, None);
        self.far.start(self.near.link());
    }

    fn turn(&mut self) {
        for relay in [&self.near.relay, &self.far.relay] {
            if let Some(failure) = relay.as_ref().and_then(EventStream::failure) {
                panic!("a bridge has failed: {failure}");
            }
        }
    }
}

mod bridged_twice {
    crate::every_transport_conforms::suite::conformance!(super::BridgedWorld);
}
