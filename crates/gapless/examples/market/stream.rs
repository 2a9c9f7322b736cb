//! The stream: its configuration, and the process that sequences it. The transport is a line of the configuration, and
//! no other part of the market depends on it.

use crate::{Failure, Lifeline, say};
use gapless::prelude::*;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

/// In the directory in which all processes run.
pub const FILE: &str = "stream.toml";
/// For an answer of the sequencer.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub fn write(file: &Path, transport: &str) -> Result<(), Failure> {
    let (command, request) = (free_port()?, free_port()?);
    let groups = match transport {
        "multicast" => format!(r#"groups = ["239.253.0.1:{}", "239.253.0.2:{}"]"#, free_port()?, free_port()?),
        _ => String::new(),
    };
    let text = format!(
        r#"
        [stream]
        directory = "stream"
        transport = "{transport}"
        window = "8 MiB"
        [journal]
        segment_length = "16 MiB"
        [network]
        command = "127.0.0.1:{command}"
        request = "127.0.0.1:{request}"
        rewind = "127.0.0.1:{request}"
        {groups}
        interface = "127.0.0.1"
        hops = 0
        "#
    );
    Ok(std::fs::write(file, text)?)
}

fn free_port() -> Result<u16, Failure> {
    loop {
        let address = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        if TcpListener::bind(address).is_ok() {
            return Ok(address.port());
        }
    }
}

pub fn sequence(name: &str, lifeline: &Lifeline) -> Result<(), Failure> {
    let stream = EventStream::start(&EventStreamOptions::from_config(&StreamConfig::load(FILE)?)?)?;
    say(name, format!("one order for everybody, tier {}", stream.tier()));
    while !lifeline.is_finished() {
        if let Some(failure) = stream.failure() {
            return Err(failure.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    say(name, format!("stopped at sequence {}", stream.stop()?));
    Ok(())
}
