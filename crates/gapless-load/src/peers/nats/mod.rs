//! NATS: a private `nats-server`, and its text protocol. A caller has one wildcard inbox, like common clients, and
//! numbers its replies in the subject. Messages are in memory and delivered at most once.

mod protocol;

use crate::peers::broker::{BrokerProcess, find, free_address};
use crate::peers::connection::{BrokerConnection, silence};
use crate::peers::subject::{PeerCaller, PeerHandler, PeerServer, WaitMode};
use crate::peers::{PeerError, Result};
use protocol::{NatsOperation, PROTOCOL};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const QUEUE_GROUP: &str = "servers";
const INSTALL: &str = "apt-get install nats-server, or go install github.com/nats-io/nats-server/v2@latest";

pub fn find_server() -> Result<PathBuf> {
    find("nats-server", INSTALL)
}

/// Stopped when dropped.
#[derive(Debug)]
pub struct NatsBroker {
    process: BrokerProcess,
    address: SocketAddr,
}

impl NatsBroker {
    /// Keeps its files in the existing `directory`; `stop` ends the wait.
    ///
    /// # Errors
    /// [`PeerError::Missing`] if it is not installed; a server that does not start.
    pub fn start(directory: &Path, stop: &dyn Fn() -> bool) -> Result<Self> {
        let path = find_server()?;
        let address = free_address()?;
        // By default, a slow reader is disconnected at 64 MB, and a ping delays messages.
        let configuration = format!(
            "host: {}\nport: {}\nmax_pending: 1GB\nwrite_deadline: \"60s\"\nping_interval: \"1h\"\n",
            address.ip(),
            address.port()
        );
        let file = directory.join("nats.conf");
        std::fs::write(&file, configuration).map_err(|error| PeerError::io("write nats.conf", error))?;
        let arguments = ["-c".into(), file.into()];
        let mut process = BrokerProcess::start("nats-server", &path, &arguments, &[], directory)?;
        process.wait_until_up(|| NatsCaller::connect(address, "up", WaitMode::Blocking).ok(), stop)?;
        Ok(Self { process, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn process(&self) -> &BrokerProcess {
        &self.process
    }
}

fn open(address: SocketAddr, waiting: WaitMode, subscribe: &str) -> Result<BrokerConnection> {
    let mut connection = BrokerConnection::open(address, waiting)?;
    let hello =
        r#"CONNECT {"verbose":false,"pedantic":false,"tls_required":false,"lang":"rust","version":"0","protocol":1}"#;
    connection.output().extend_from_slice(format!("{hello}\r\n{subscribe}PING\r\n").as_bytes());
    connection.flush()?;
    let mut since = None;
    loop {
        while let Some((operation, length)) = protocol::parse(connection.unread())? {
            let is_ready = matches!(operation, NatsOperation::Pong);
            connection.take(length);
            if is_ready {
                return Ok(connection);
            }
        }
        connection.fill_since(&mut since, silence(PROTOCOL, "answer to the first ping"))?;
    }
}

pub struct NatsCaller {
    connection: BrokerConnection,
    route: String,
    inbox: String,
}

impl NatsCaller {
    /// `route` is a subject.
    ///
    /// # Errors
    /// There is no server, or another one.
    pub fn connect(address: SocketAddr, route: &str, waiting: WaitMode) -> Result<Self> {
        let mut token = [0; 8];
        rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| PeerError::io("draw a random number", error))?;
        let inbox = format!("_INBOX.{:016x}", u64::from_le_bytes(token));
        let connection = open(address, waiting, &format!("SUB {inbox}.* 1\r\n"))?;
        Ok(Self { connection, route: route.to_owned(), inbox })
    }
}

impl PeerCaller for NatsCaller {
    fn begin(&mut self, ticket: u64, request: &[u8]) -> Result<()> {
        let output = self.connection.output();
        let _ = write!(output, "PUB {} {}.{ticket} {}\r\n", self.route, self.inbox, request.len());
        output.extend_from_slice(request);
        output.extend_from_slice(b"\r\n");
        self.connection.flush_if_long()
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        self.connection.flush()?;
        let (mut since, mut has_come) = (None, false);
        loop {
            while let Some((operation, length)) = protocol::parse(self.connection.unread())? {
                let mut pong = false;
                match operation {
                    NatsOperation::Message { subject, payload, .. } => {
                        let ticket = subject.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
                        let ticket =
                            ticket.ok_or_else(|| PeerError::protocol(PROTOCOL, "the number of a reply", subject))?;
                        take(ticket, payload);
                        has_come = true;
                    }
                    NatsOperation::Ping => pong = true,
                    NatsOperation::Pong | NatsOperation::Other => {}
                }
                self.connection.take(length);
                if pong {
                    self.connection.output().extend_from_slice(b"PONG\r\n");
                }
            }
            if has_come {
                return Ok(());
            }
            self.connection.fill_since(&mut since, silence(PROTOCOL, "reply"))?;
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let output = self.connection.output();
        let _ = write!(output, "PUB {} {}\r\n", self.route, message.len());
        output.extend_from_slice(message);
        output.extend_from_slice(b"\r\n");
        self.connection.flush_if_long()
    }

    fn flush(&mut self) -> Result<()> {
        self.connection.flush()
    }
}

pub struct NatsServer {
    connection: BrokerConnection,
}

impl NatsServer {
    /// Subscribes to `route`, a subject.
    ///
    /// # Errors
    /// There is no broker, or another one.
    pub fn connect(address: SocketAddr, route: &str, waiting: WaitMode) -> Result<Self> {
        Ok(Self { connection: open(address, waiting, &format!("SUB {route} {QUEUE_GROUP} 1\r\n"))? })
    }
}

impl PeerServer for NatsServer {
    fn serve(&mut self, handler: &mut dyn PeerHandler, stop: &AtomicBool) -> Result<()> {
        let (mut answer, mut output) = (Vec::new(), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            while let Some((operation, length)) = protocol::parse(self.connection.unread())? {
                match operation {
                    NatsOperation::Message { reply: Some(inbox), payload, .. } => {
                        answer.clear();
                        handler.call(payload, &mut answer);
                        let _ = write!(output, "PUB {inbox} {}\r\n", answer.len());
                        output.extend_from_slice(&answer);
                        output.extend_from_slice(b"\r\n");
                    }
                    NatsOperation::Message { payload, .. } => handler.receive(payload),
                    NatsOperation::Ping => output.extend_from_slice(b"PONG\r\n"),
                    NatsOperation::Pong | NatsOperation::Other => {}
                }
                self.connection.take(length);
                if !output.is_empty() {
                    self.connection.output().append(&mut output);
                    self.connection.flush_if_long()?;
                }
            }
            self.connection.flush()?;
            self.connection.fill()?;
        }
        Ok(())
    }
}
