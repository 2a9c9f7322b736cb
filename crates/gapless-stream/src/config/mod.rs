//! [`StreamConfig`]: one TOML file configures a whole stream, its sequencer and its nodes, over any transport.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`StreamConfig`], and what is made of it |
//! | `tables` | the tables of the file: which keys there are, and what each may be |
//! | `checks` | what does not go together |
//!
//! The defaults are those of [`EventStreamOptions`], [`PacketNetwork`], [`TcpNetwork`](crate::network::TcpNetwork) and
//! [`NodeOptions`], and stand nowhere else.
//! `docs/guides/stream.toml` shows every key.
//!
//! ```
//! use gapless_stream::StreamConfig;
//! let config = StreamConfig::parse("[stream]\ndirectory = \"orders\"\nwindow = \"8 MiB\"\nmessage_length_max = \"1 MiB\"", "orders.toml")?;
//! assert_eq!(config.event_stream_options().window_bytes, 8 << 20);
//! let refused = StreamConfig::parse("[stream]\ndirectory = \"orders\"\ntier = \"fast\"", "orders.toml").err().unwrap();
//! assert_eq!(
//!     refused.to_string(),
//!     r#"orders.toml:3: stream.tier: "fast" was found; "memory", "journal", "sync" are allowed"#
//! );
//! # Ok::<(), gapless_stream::StreamError>(())
//! ```

mod checks;
mod tables;
#[cfg(test)]
mod tests;

use crate::StreamError;
use crate::network::endpoints::{Carrier, PacketNetwork};
use crate::options::EventStreamOptions;
use gapless_client::ClientError;
use gapless_client::node::{
    AnyLink, DatagramLink, DatagramOptions, NodeOptions, PublisherOptions, SharedMemoryLink, SharedMemoryOptions,
    Start, TcpLink, TcpOptions,
};
use gapless_client::stream_file::document::{Document, Table};
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use gapless_transport::token::random_token;
use gapless_transport::transport::Transport;
use gapless_wire::soup::Field;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// What is said of nodes: the same for each, unless a node changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Where a node begins to read.
    pub start: Start,
    /// How it publishes; the token is another one in each node.
    pub publisher: PublisherOptions,
    /// Its name, where it must give one.
    pub username: Field<6>,
    /// Its password.
    pub password: Field<10>,
    /// Whether its packets may hold several frames.
    pub batch: bool,
    /// A sequencer that says nothing for so long is gone, ns.
    pub silence_ns_max: u64,
}

/// A stream as its file describes it.
#[derive(Clone)]
pub struct StreamConfig {
    transport: Transport,
    stream: EventStreamOptions,
    /// Where other members of its cluster keep it on this machine.
    other_directories: Vec<PathBuf>,
    /// The nodes; a program may change what the file says of its own.
    pub node: NodeSettings,
}

impl StreamConfig {
    /// Reads the file `path`. A relative directory in it is relative to the file.
    ///
    /// # Errors
    /// [`StreamError::System`] if it cannot be read; as for [`StreamConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, StreamError> {
        Self::load_with(path, |_, _| Ok(())).map(|(config, ())| config)
    }

    /// As [`StreamConfig::load`], of a file that says other things beside: `others` takes its own tables.
    ///
    /// # Errors
    /// As for [`StreamConfig::load`], and those of `others`.
    pub fn load_with<T>(
        path: impl AsRef<Path>,
        others: impl FnOnce(&Document<'_>, &mut Table<'_>) -> Result<T, ClientError>,
    ) -> Result<(Self, T), StreamError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| StreamError::System { action: format!("reading {name}"), source })?;
        let (mut config, found) = Self::parse_with(&text, &name, others)?;
        if let (Some(directory), Some(parent)) = (&mut config.stream.directory, path.parent()) {
            *directory = parent.join(&*directory);
        }
        Ok((config, found))
    }

    /// Reads a file's `text`; `name` is the file, for messages. A relative directory stays as it is.
    ///
    /// # Errors
    /// [`ClientError::Config`] with file, line, key, what was found and what is allowed: text that is no TOML, unknown
    /// keys, values of a wrong kind or out of range, and values that do not go together.
    pub fn parse(text: &str, name: &str) -> Result<Self, StreamError> {
        Self::parse_with(text, name, |_, _| Ok(())).map(|(config, ())| config)
    }

    /// As [`StreamConfig::parse`], of a text that says other things beside: `others` takes its own tables.
    ///
    /// # Errors
    /// As for [`StreamConfig::parse`], and those of `others`.
    pub fn parse_with<T>(
        text: &str,
        name: &str,
        others: impl FnOnce(&Document<'_>, &mut Table<'_>) -> Result<T, ClientError>,
    ) -> Result<(Self, T), StreamError> {
        let document = Document::new(name, text);
        let mut file = document.tables()?;
        let config = tables::read(&mut file)?;
        let found = others(&document, &mut file)?;
        file.end()?;
        checks::check(&config, &document)?;
        Ok((config, found))
    }

    /// The defaults: a stream in `directory` at tier `journal`, over shared memory.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        let datagrams = DatagramOptions::new(UNSPECIFIED, UNSPECIFIED);
        let node = NodeOptions::default();
        let node = NodeSettings {
            start: node.start,
            publisher: node.publisher.unwrap_or_default(),
            username: datagrams.username,
            password: datagrams.password,
            batch: datagrams.batch,
            silence_ns_max: datagrams.silence_ns_max,
        };
        let (stream, other_directories) = (EventStreamOptions::in_directory(directory), Vec::new());
        Self { transport: Transport::SharedMemory, stream, other_directories, node }
    }

    /// Nodes over shared memory find it in these directories as well: those of other members of its cluster on this
    /// machine. They go to the one that leads.
    #[must_use]
    pub fn or_in(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.other_directories.extend(directories);
        self
    }

    /// What carries the stream.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Where the stream lives; `None` where it keeps nothing.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.stream.directory.as_deref()
    }

    /// How the sequencer is run.
    #[must_use]
    pub fn event_stream_options(&self) -> EventStreamOptions {
        self.stream.clone()
    }

    /// How a node that publishes is run: under `token`, or a random one.
    #[must_use]
    pub fn node_options(&self, token: Option<u128>) -> NodeOptions {
        let token = token.unwrap_or_else(random_token);
        let publisher = Some(PublisherOptions { token, ..self.node.publisher });
        NodeOptions { start: self.node.start, publisher, ..NodeOptions::default() }
    }

    /// How a node that only reads is run.
    #[must_use]
    pub fn reading_options(&self) -> NodeOptions {
        NodeOptions::reading(self.node.start)
    }

    /// A new way for one node to the sequencer.
    ///
    /// # Errors
    /// The operating system's, for sockets.
    pub fn link(&self) -> Result<AnyLink, StreamError> {
        match (&self.stream.packets, &self.stream.tcp) {
            (Some(network), _) => self.datagram_link(network).map(AnyLink::from),
            (None, Some(network)) => {
                let options = TcpOptions {
                    username: self.node.username,
                    password: self.node.password,
                    silence_ns_max: self.node.silence_ns_max,
                    ..TcpOptions::new(network.command, network.rewind)
                };
                Ok(TcpLink::new(options).into())
            }
            (None, None) => {
                let directory = self.stream.directory.as_deref().unwrap_or(Path::new("."));
                let others = self.other_directories.iter().map(PathBuf::as_path);
                let directories: Vec<&Path> = std::iter::once(directory).chain(others).collect();
                Ok(SharedMemoryLink::any(&directories, SharedMemoryOptions::default()).into())
            }
        }
    }

    fn datagram_link(&self, network: &PacketNetwork) -> Result<DatagramLink<UdpSocket>, StreamError> {
        let (interface, segmentation) = match &network.carrier {
            Carrier::Udp { interface, segmentation, .. } => (interface.clone(), *segmentation),
            Carrier::Memory(_) => (Interface::Default, Segmentation::Off),
        };
        let options = DatagramOptions {
            username: self.node.username,
            password: self.node.password,
            batch: self.node.batch,
            packet_length_max: network.packet_length_max,
            silence_ns_max: self.node.silence_ns_max,
            rewind: self.stream.tcp.as_ref().map(|network| network.rewind),
            ..DatagramOptions::new(network.command, network.request)
        };
        Ok(DatagramLink::open(&network.groups, &interface, segmentation, options)?)
    }
}

const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
