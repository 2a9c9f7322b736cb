//! The stream's configuration. The transport is a line of it, and no other part of the market depends on it.

use crate::Failure;
use crate::lifeline::Lifeline;
use crate::options::Transport;
use crate::report;
use gapless::prelude::*;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

pub const NAME: &str = "stream.toml";

pub fn write(place: &Path, transport: Transport) -> Result<(), Failure> {
    let (name, network) = match transport {
        Transport::SharedMemory => ("shared-memory", String::new()),
        Transport::Udp => ("udp", format!("[network]\ncommand = {}\nrequest = {}\n", free()?, free()?)),
        Transport::Multicast => {
            let groups = format!("groups = [{}, {}]\ninterface = \"127.0.0.1\"\nhops = 0\n", group(1)?, group(2)?);
            ("multicast", format!("[network]\ncommand = {}\nrequest = {}\n{groups}", free()?, free()?))
        }
        Transport::Tcp => ("tcp", format!("[network]\ncommand = {}\nrewind = {}\n", free()?, free()?)),
    };
    let text = format!(
        "[stream]\ndirectory = \"stream\"\ntransport = \"{name}\"\nwindow = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n\
         [journal]\nsegment_length = \"16 MiB\"\n{network}"
    );
    Ok(std::fs::write(place.join(NAME), text)?)
}

fn free() -> Result<String, Failure> {
    loop {
        let address = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        if TcpListener::bind(address).is_ok() {
            return Ok(format!("\"{address}\""));
        }
    }
}

/// Multicast group that another market on this machine is unlikely to use.
fn group(feed: u8) -> Result<String, Failure> {
    let process = std::process::id().to_le_bytes();
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(format!("\"239.253.{}.{}:{port}\"", process[0], process[1].wrapping_mul(2).wrapping_add(feed)))
}

pub fn load(place: &Path) -> Result<StreamConfig, Failure> {
    Ok(StreamConfig::load(place.join(NAME))?)
}

pub fn sequence(place: &Path, lifeline: &Lifeline) -> Result<(), Failure> {
    let stream = EventStream::start(&EventStreamOptions::from_config(&load(place)?)?)?;
    println!("one order for everybody, tier {}", stream.tier());
    report::say("ready", &[]);
    while !lifeline.is_cut() {
        if let Some(failure) = stream.failure() {
            return Err(failure.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let sequences = stream.stop()?;
    println!("stopped at sequence {sequences}");
    report::say("result", &[("sequences", sequences.into())]);
    Ok(())
}
