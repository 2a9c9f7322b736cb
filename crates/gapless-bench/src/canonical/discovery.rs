//! Discovery of a backup without its address: the primary calls into a multicast group, and the backup answers.

use crate::{BenchError, Result};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Site-local, used by no other protocol.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 43, 0), 4300);
const CALL: &[u8] = b"gapless canonical backup?";
const ANSWER: &[u8] = b"gapless canonical backup at ";
const TIMEOUT: Duration = Duration::from_secs(30);

fn failed(source: std::io::Error) -> BenchError {
    BenchError::System { action: "look for the backup by multicast", source }
}

/// Calls until a backup answers; returns its address.
///
/// # Errors
/// No answer in time; an interface without multicast.
pub(super) fn find(interface: Option<Ipv4Addr>) -> Result<SocketAddr> {
    let socket = UdpSocket::bind((interface.unwrap_or(Ipv4Addr::UNSPECIFIED), 0)).map_err(failed)?;
    socket.set_read_timeout(Some(Duration::from_millis(200))).map_err(failed)?;
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        socket.send_to(CALL, GROUP).map_err(failed)?;
        let mut bytes = [0; 64];
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        let port = bytes[..length].strip_prefix(ANSWER).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        if let Some(port) = port {
            return Ok(SocketAddr::new(from.ip(), port));
        }
    }
    let text = "no backup has answered; start it first, or say where it is with --backup-address";
    Err(failed(std::io::Error::other(text)))
}

/// Answers callers with `port` until `stopped`. Without multicast no caller is answered; that is logged.
pub(super) fn answer(interface: Option<Ipv4Addr>, port: u16, stopped: Arc<AtomicBool>) {
    let interface = interface.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let opened = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, GROUP.port())).and_then(|socket| {
        socket.join_multicast_v4(GROUP.ip(), &interface)?;
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        Ok(socket)
    });
    let socket = match opened {
        Ok(socket) => socket,
        Err(error) => {
            eprintln!("backup: it cannot be found by multicast: {error}");
            return;
        }
    };
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while !stopped.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
            if &bytes[..length] == CALL {
                let text = [ANSWER, port.to_string().as_bytes()].concat();
                // A caller without an answer calls again.
                let _ = socket.send_to(&text, from);
            }
        }
    });
}
