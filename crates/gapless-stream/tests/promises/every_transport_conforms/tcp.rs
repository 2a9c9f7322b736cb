use super::world::World;
use gapless_client::node::{TcpLink, TcpOptions};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use std::net::SocketAddr;
use tempfile::TempDir;

pub struct Tcp {
    _directory: TempDir,
    options: EventStreamOptions,
    network: TcpNetwork,
    stream: Option<EventStream>,
}

impl World for Tcp {
    type Link = TcpLink;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 8 << 20;
        options.message_length_max = 2 << 20;
        options.frame_length_max = 1_376;
        let any_port = SocketAddr::from((own_loopback(), 0));
        let mut network = TcpNetwork::new(any_port, any_port);
        options.tcp = Some(network.clone());
        change(&mut options);
        let stream = EventStream::start(&options).unwrap();
        let addresses = stream.tcp_addresses().unwrap();
        (network.command, network.rewind) = (addresses.command, addresses.rewind);
        options.tcp = Some(network.clone());
        Self { _directory: directory, options, network, stream: Some(stream) }
    }

    fn link(&mut self) -> TcpLink {
        TcpLink::new(TcpOptions::new(self.network.command, self.network.rewind))
    }

    fn stream(&self) -> &EventStream {
        self.stream.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.stream = None;
        self.stream = Some(EventStream::start(&self.options).unwrap());
    }
}

crate::every_transport_conforms::suite::conformance!(Tcp);
