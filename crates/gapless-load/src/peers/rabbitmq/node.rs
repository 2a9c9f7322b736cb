//! A private RabbitMQ node: all files in one directory, all ports free ones of the loopback interface, and its own
//! `epmd` daemon, by which Erlang nodes find each other.

use super::RabbitMqCaller;
use crate::peers::broker::{BrokerProcess, find, free_address};
use crate::peers::subject::WaitMode;
use crate::peers::{PeerError, Result};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

const INSTALL: &str = "apt-get install rabbitmq-server (its service need not run)";
/// Debian's wrapper runs the script next to it as another user, or refuses.
const WRAPPER: &str = "rabbitmq-script-wrapper";

pub fn find_node() -> Result<PathBuf> {
    find("rabbitmq-server", INSTALL)
}

/// Stopped when dropped.
#[derive(Debug)]
pub struct RabbitMqBroker {
    process: BrokerProcess,
    /// The `epmd` daemon; dropped after the node.
    _names: BrokerProcess,
    address: SocketAddr,
}

impl RabbitMqBroker {
    /// Keeps its files in the existing `directory`; `stop` ends the wait.
    ///
    /// # Errors
    /// [`PeerError::Missing`] if it is not installed; a node that does not start.
    pub fn start(directory: &Path, stop: &dyn Fn() -> bool) -> Result<Self> {
        let mut script = find_node()?;
        if script.file_name().is_some_and(|name| name == WRAPPER) {
            script.set_file_name("rabbitmq-server");
        }
        let names_program = find("epmd", "it comes with Erlang, which rabbitmq-server needs")?;
        let folder = |name: &str| {
            let path = directory.join(name);
            let made = std::fs::create_dir(&path);
            made.map(|()| path).map_err(|error| PeerError::io(format!("make the folder {name} of RabbitMQ"), error))
        };
        let (names, node) = (folder("names")?, folder("node")?);
        let (address, distribution, names_address) = (free_address()?, free_address()?, free_address()?);
        let arguments =
            ["-port".into(), names_address.port().to_string().into(), "-address".into(), "127.0.0.1".into()];
        let mut names = BrokerProcess::start("epmd", &names_program, &arguments, &[], &names)?;
        names.wait_until_up(|| TcpStream::connect(names_address).ok(), stop)?;

        let environment = environment(&node, address, distribution.port(), names_address.port());
        write_configuration(&node)?;
        let mut process = BrokerProcess::start("rabbitmq-server", &script, &[], &environment, &node)?;
        process.wait_until_up(|| RabbitMqCaller::connect(address, "up", WaitMode::Blocking).ok(), stop)?;
        Ok(Self { process, _names: names, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn node_process_id(&self) -> Option<u32> {
        let is_node = |pid: &u32| {
            // Erlang may append its schedulers to the name.
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("beam"))
        };
        self.process.processes().into_iter().find(is_node)
    }

    pub fn process(&self) -> &BrokerProcess {
        &self.process
    }
}

/// No plugins, no delay, no limit for a nearly full disk.
fn write_configuration(node: &Path) -> Result<()> {
    let failed = |error| PeerError::io("write the configuration of RabbitMQ", error);
    std::fs::write(node.join("enabled_plugins"), "[].\n").map_err(failed)?;
    let text = "log.console = false\nlog.file.level = error\ndisk_free_limit.absolute = 1MB\n\
                tcp_listen_options.nodelay = true\n";
    std::fs::write(node.join("rabbitmq.conf"), text).map_err(failed)?;
    std::fs::write(node.join("rabbitmq-env.conf"), "").map_err(failed)
}

/// Keeps the node in its directory; the cookie is created in its home.
fn environment(node: &Path, address: SocketAddr, distribution: u16, names: u16) -> Vec<(&'static str, OsString)> {
    let path = |name: &str| -> PathBuf { node.join(name) };
    let folders = [
        ("HOME", path("")),
        ("RABBITMQ_CONF_ENV_FILE", path("rabbitmq-env.conf")),
        ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins")),
        ("RABBITMQ_LOG_BASE", path("log")),
        ("RABBITMQ_MNESIA_BASE", path("data")),
        ("RABBITMQ_GENERATED_CONFIG_DIR", path("generated")),
        ("RABBITMQ_PID_FILE", path("pid")),
    ];
    let words = [
        ("RABBITMQ_NODENAME", format!("gapless-bench-{}@localhost", address.port())),
        ("RABBITMQ_NODE_IP_ADDRESS", Ipv4Addr::LOCALHOST.to_string()),
        ("RABBITMQ_NODE_PORT", address.port().to_string()),
        ("RABBITMQ_DIST_PORT", distribution.to_string()),
        ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}".to_owned()),
        ("ERL_EPMD_PORT", names.to_string()),
        ("ERL_EPMD_ADDRESS", Ipv4Addr::LOCALHOST.to_string()),
    ];
    let folders = folders.map(|(name, path)| (name, path.into_os_string()));
    folders.into_iter().chain(words.map(|(name, word)| (name, word.into()))).collect()
}
