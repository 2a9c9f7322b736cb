//! TCP clients are redirected to the leader, and keep their sessions when it fails. Bad connections are refused with a
//! reason.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::replicas::{Caller, Cluster, PATIENCE, wait};
use gapless_client::node::{NodeLink, Start, TcpLink, TcpOptions};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{ClientError, PolledClient};
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_log::StreamIdentity;
use gapless_schema::Encoding;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use gapless_transport::TransportError;
use gapless_transport::credentials::Credentials;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::soup::Field;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        self.0 += payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or("8 bytes are expected")?;
        let mut reply = self.0.to_le_bytes().to_vec();
        reply.extend_from_slice(&payload[..payload.len().min(512)]);
        context.reply_with(TYPE, &reply)
    }
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TYPE.schema, Self::add);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

fn credentials(name: &str, password: &str) -> Credentials {
    Credentials { username: Field::new(name).unwrap(), password: Field::new(password).unwrap() }
}

fn cluster(count: usize) -> (Cluster, Vec<SocketAddr>) {
    let mut cluster = Cluster::new(count, "");
    let ports: Vec<_> = (0..count).map(|_| free_address()).collect();
    for (member, port) in (1..).zip(&ports) {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        let clients = format!("[clients]\naddress = \"{port}\"\nusername = \"teller\"\npassword = \"sesame\"\n");
        std::fs::write(cluster.file(member), text + &clients).unwrap();
        cluster.start(member, Sum::default()).unwrap();
    }
    (cluster, ports)
}

fn connect(ports: &[SocketAddr], credentials: Credentials) -> Result<PolledClient, ClientError> {
    let addresses: Vec<_> = ports.iter().map(|port| format!("tcp:{port}")).collect();
    PolledClient::connect_any(&addresses, ClientOptions { timeout: PATIENCE, credentials, ..ClientOptions::default() })
}

#[test]
fn sessions_outlive_their_leaders() {
    let (mut cluster, ports) = cluster(3);
    let first = cluster.leader();
    let mut order: Vec<_> = (1..=3).filter(|member| *member != first).chain([first]).collect();
    let ports_in = |order: &[usize]| order.iter().map(|member| ports[member - 1]).collect::<Vec<_>>();
    let mut caller = Caller::over(connect(&ports_in(&order), credentials("teller", "sesame")).unwrap(), TYPE);
    assert_eq!(cluster.of(first).member().stream().client_address(), Some(ports[first - 1]));
    order.reverse();
    let mut other = Caller::over(connect(&ports_in(&order), credentials("teller", "sesame")).unwrap(), TYPE);
    other.length = 60_000;
    caller.call_more(&mut cluster, 300);
    other.call_more(&mut cluster, 20);
    for _ in 0..2 {
        let leader = cluster.leader();
        cluster.members[leader - 1].take().unwrap().stop().unwrap();
        caller.call_more(&mut cluster, 300);
        other.call_more(&mut cluster, 20);
        cluster.start(leader, Sum::default()).unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
    caller.call_more(&mut cluster, 100);
    let sums: Vec<u64> =
        caller.replies.values().map(|reply| u64::from_le_bytes(reply[..8].try_into().unwrap())).collect();
    assert_eq!(sums.len(), 1_000);
    assert!(sums.is_sorted(), "each reply is the sum so far");
    let whole = |count: u64| count * (count + 1) / 2;
    // In the order of the stream the last reply has the whole sum.
    let last = caller.replies.last_key_value().unwrap().1;
    assert_eq!(u64::from_le_bytes(last[..8].try_into().unwrap()), whole(1_000) + whole(60));
    assert!(other.replies.values().all(|reply| reply.len() == 8 + 512));
    cluster.ends_equal(&[1, 2, 3]);
}

#[test]
fn bad_connections_get_a_reason() {
    let (mut cluster, ports) = cluster(1);
    let mut caller = Caller::over(connect(&ports, credentials("teller", "sesame")).unwrap(), TYPE);
    caller.call_more(&mut cluster, 10);

    let reason = |outcome: Result<PolledClient, ClientError>| match outcome {
        Err(ClientError::Transport(TransportError::Handshake { reason, .. })) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the connection is accepted"),
    };
    assert!(reason(connect(&ports, credentials("teller", "wrong"))).contains("not known here"));
    assert!(reason(connect(&ports, Credentials::BLANK)).contains("not known here"));
    let identity = StreamIdentity { stream_id: 77, incarnation: 0 };
    let options = ClientOptions { identity, credentials: credentials("teller", "sesame"), ..ClientOptions::default() };
    assert!(reason(PolledClient::connect_any(&[format!("tcp:{}", ports[0])], options)).contains("this is stream"));

    let username = Field::new("teller").unwrap();
    let options =
        TcpOptions { username, password: Field::new("sesame").unwrap(), ..TcpOptions::new(ports[0], ports[0]) };
    let (mut link, begun) = (TcpLink::new(options), Instant::now());
    let refused = wait("the refusal", || {
        match link.connect(Start::First, SeenFrame::default(), begun.elapsed().as_nanos() as u64) {
            Ok(None) => None,
            Ok(Some(_)) => panic!("a node is accepted"),
            Err(error) => Some(error.to_string()),
        }
    });
    assert!(refused.contains("cannot be read"), "{refused}");

    let mut stranger = TcpStream::connect(ports[0]).unwrap();
    stranger.write_all(&[7; 200]).unwrap();
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(stranger.read(&mut [0; 64]).unwrap_or(0), 0);
    caller.call_more(&mut cluster, 10);

    let root = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let tcp = Some(TcpNetwork::new(any, any));
    let stream = EventStreamOptions { tcp, frame_length_max: 4096, ..EventStreamOptions::in_directory(root.path()) };
    let stream = EventStream::start(&stream).unwrap();
    let address = stream.tcp_addresses().unwrap().command;
    assert!(reason(connect(&[address], Credentials::BLANK)).contains("no service"));
    stream.stop().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    let another = std::thread::spawn(move || nobody.accept().unwrap().0.write_all(&[9; 100]).unwrap());
    assert!(reason(connect(&[address], Credentials::BLANK)).contains("what answers is no service"));
    another.join().unwrap();
    assert!(matches!(
        connect(&[address], Credentials::BLANK),
        Err(ClientError::Transport(TransportError::System { .. }))
    ));
    let wrong = PolledClient::connect_any(&["tcp:nowhere.invalid:1"], ClientOptions::default());
    assert!(matches!(wrong, Err(ClientError::Transport(TransportError::System { .. }))));
    caller.call_more(&mut cluster, 10);
}
