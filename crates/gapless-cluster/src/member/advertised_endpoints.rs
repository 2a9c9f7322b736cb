//! Endpoints of each member for publishers, so that a follower redirects them straight to the leader. Members exchange
//! them when they connect; no file lists them.

use crate::link::wire::ENDPOINTS_LENGTH_MAX;
use gapless_client::polled::TCP_PREFIX;
use gapless_client::stream_layout::StreamLayout;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Member and its addresses, one a line.
pub(super) type EndpointsSlot = Arc<Mutex<Vec<(u64, String)>>>;

#[derive(Debug, Default)]
pub(super) struct AdvertisedEndpoints {
    own: String,
    others: Vec<(u64, String)>,
    /// Copy of `others` for other threads.
    shared: EndpointsSlot,
}

impl AdvertisedEndpoints {
    /// Creates the endpoints from the stream's socket and the port for clients, if any; endpoints that are too long are
    /// not sent.
    pub fn new(layout: &StreamLayout, port: Option<SocketAddr>) -> Self {
        let socket = std::path::absolute(layout.socket()).unwrap_or_else(|_| layout.socket());
        let mut own = String::new();
        let port = port.map(|port| format!("{TCP_PREFIX}{port}"));
        for endpoint in port.into_iter().chain(socket.to_str().map(str::to_owned)) {
            let all = if own.is_empty() { endpoint } else { format!("{own}\n{endpoint}") };
            if are_endpoints(&all) {
                own = all;
            }
        }
        Self { own, ..Self::default() }
    }

    pub fn shared_in(self, shared: EndpointsSlot) -> Self {
        Self { shared, ..self }
    }

    fn share(&self) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.others);
    }

    /// Message for the others: addresses, one a line.
    pub fn own(&self) -> &[u8] {
        self.own.as_bytes()
    }

    /// `false` if invalid; then the earlier endpoints stay.
    pub fn receive(&mut self, from: u64, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        if !text.is_empty() && !are_endpoints(text) {
            return false;
        }
        self.others.retain(|(other, _)| *other != from);
        self.others.push((from, text.to_owned()));
        self.share();
        true
    }

    pub fn forget(&mut self, member: u64) {
        self.others.retain(|(other, _)| *other != member);
        self.share();
    }

    /// Addresses of `member`, one a line; empty if unknown.
    pub fn of(&self, member: u64) -> &str {
        self.others.iter().find(|(other, _)| *other == member).map_or("", |(_, text)| text)
    }
}

fn are_endpoints(text: &str) -> bool {
    let is_port = |line: &str| line.strip_prefix(TCP_PREFIX).is_some_and(|port| port.parse::<SocketAddr>().is_ok());
    let is_endpoint = |line: &str| is_port(line) || Path::new(line).is_absolute() && !line.contains(char::is_control);
    text.len() <= ENDPOINTS_LENGTH_MAX && text.split('\n').all(is_endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_round_trip() {
        let (first, mut second) =
            (AdvertisedEndpoints::new(&StreamLayout::new("/run/orders/a"), None), AdvertisedEndpoints::default());
        assert_eq!(first.own(), b"/run/orders/a/stream.socket");
        assert!(second.receive(1, first.own()));
        assert_eq!((second.of(1), second.of(2)), ("/run/orders/a/stream.socket", ""));
        for nonsense in
            [&b"relative/path"[..], b"/a\n", b"/a\n\n/b", b"/a\x07", b"/\xff", &[b'/'; ENDPOINTS_LENGTH_MAX + 1]]
        {
            assert!(!second.receive(1, nonsense), "{nonsense:?}");
        }
        assert_eq!(second.of(1), "/run/orders/a/stream.socket");
        assert!(second.receive(1, b"/b\n/c") && second.of(1) == "/b\n/c");
        assert!(second.receive(1, b"") && second.of(1).is_empty());
        let far = StreamLayout::new("/".to_owned() + &"x".repeat(ENDPOINTS_LENGTH_MAX));
        assert_eq!(AdvertisedEndpoints::new(&far, None).own(), b"");
        let port = Some("[fe80::1]:9200".parse().unwrap());
        assert_eq!(AdvertisedEndpoints::new(&far, port).own(), b"tcp:[fe80::1]:9200");
        let both = AdvertisedEndpoints::new(&StreamLayout::new("/run/orders/a"), port);
        assert_eq!(both.own(), b"tcp:[fe80::1]:9200\n/run/orders/a/stream.socket");
        assert!(
            second.receive(1, both.own()) && !second.receive(1, b"tcp:9200") && !second.receive(1, b"udp:1.2.3.4:9")
        );
    }
}
