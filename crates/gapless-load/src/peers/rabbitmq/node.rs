//! A private node of RabbitMQ: everything that it writes is in one directory, everything that it listens on is a free port
//! of this machine's loopback, and the daemon by which Erlang's nodes find each other is one of its own.

use super::RabbitMqCaller;
use crate::peers::broker::{BrokerProcess, find, free_address};
use crate::peers::subject::Waiting;
use crate::peers::{PeerError, Result};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

/// How to get it.
const INSTALL: &str = "apt-get install rabbitmq-server (its service need not run)";
/// Debian's wrapper, which gives the work to another user or refuses it; the script is beside it.
const WRAPPER: &str = "rabbitmq-script-wrapper";

/// The script that starts a node.
///
/// # Errors
/// It is not installed.
pub fn find_node() -> Result<PathBuf> {
    find("rabbitmq-server", INSTALL)
}

/// A private node, stopped with this value.
#[derive(Debug)]
pub struct RabbitMqBroker {
    process: BrokerProcess,
    /// Stopped after the node.
    _names: BrokerProcess,
    address: SocketAddr,
}

impl RabbitMqBroker {
    /// Starts it with its files in `directory`, which must be there; `stop` ends the waiting for it.
    ///
    /// # Errors
    /// [`PeerError::Missing`] if it is not installed; one that does not come up.
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
        process.wait_until_up(|| RabbitMqCaller::connect(address, "up", Waiting::Blocking).ok(), stop)?;
        Ok(Self { process, _names: names, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process that is the node, if it runs.
    pub fn node_process_id(&self) -> Option<u32> {
        let is_node = |pid: &u32| {
            // A virtual machine of Erlang may set its name by its schedulers; what it begins with stays.
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("beam"))
        };
        self.process.processes().into_iter().find(is_node)
    }

    /// Its processes.
    pub fn process(&self) -> &BrokerProcess {
        &self.process
    }
}

/// No plugins, no delay; and a disk that is nearly full is not what is measured.
fn write_configuration(node: &Path) -> Result<()> {
    let failed = |error| PeerError::io("write the configuration of RabbitMQ", error);
    std::fs::write(node.join("enabled_plugins"), "[].\n").map_err(failed)?;
    let text = "log.console = false\nlog.file.level = error\ndisk_free_limit.absolute = 1MB\n\
                tcp_listen_options.nodelay = true\n";
    std::fs::write(node.join("rabbitmq.conf"), text).map_err(failed)?;
    std::fs::write(node.join("rabbitmq-env.conf"), "").map_err(failed)
}

/// The variables that keep it in its directory; the cookie is made in its home.
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
