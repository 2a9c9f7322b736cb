//! The address of a service as one string.

use crate::ClientError;
use crate::polled::{ClientOptions, PolledClient, TCP_PREFIX};
use crate::stream_layout::StreamLayout;
use std::path::{Path, PathBuf};

const TCP: &str = "tcp://";

impl PolledClient {
    /// Like [`PolledClient::connect_any`], to an address as [`Client::connect`](crate::Client::connect) takes it.
    ///
    /// # Errors
    /// As for [`PolledClient::connect`]; [`ClientError::Option`] for a text that is no address.
    pub fn connect_to(address: &str, options: ClientOptions) -> Result<Self, ClientError> {
        Self::connect_any(&parse(address)?, options)
    }
}

/// Addresses of a service's members, as [`PolledClient::connect_any`](crate::PolledClient::connect_any) takes them.
///
/// # Errors
/// [`ClientError::Option`] names the part that is no address.
pub(super) fn parse(address: &str) -> Result<Vec<PathBuf>, ClientError> {
    let mut is_tcp = false;
    let is_alone = !address.contains(',');
    address.split(',').map(|part| parse_part(part.trim(), is_alone, &mut is_tcp)).collect()
}

fn parse_part(part: &str, is_alone: bool, is_tcp: &mut bool) -> Result<PathBuf, ClientError> {
    let refuse = |reason: String| Err(ClientError::Option { option: "address", reason });
    let place = match part.split_once("://") {
        Some(("tcp", place)) => {
            *is_tcp = true;
            place
        }
        Some(("tls", _)) => {
            return refuse(format!(
                "{part}: connections are not encrypted yet; use {TCP}HOST:PORT in a network that you trust, or a tunnel"
            ));
        }
        Some((scheme, _)) => {
            return refuse(format!(
                "{part}: {scheme}:// is unknown; a directory, a socket or {TCP}HOST:PORT is expected"
            ));
        }
        None => part,
    };
    if place.is_empty() {
        return refuse("an empty part; a directory, a socket or tcp://HOST:PORT is expected".to_owned());
    }
    if *is_tcp {
        let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse().ok());
        return match port {
            Some(1..=u16::MAX) => Ok(PathBuf::from(format!("{TCP_PREFIX}{place}"))),
            _ => refuse(format!("{part}: {TCP}HOST:PORT is expected, with a port from 1 to 65535")),
        };
    }
    if let Some(rest) = place.strip_prefix(TCP_PREFIX) {
        return refuse(format!("{part}: write {TCP}{rest}"));
    }
    let path = Path::new(place);
    if path.is_file() {
        return refuse(format!("{part}: a file; the directory or the socket of a service or a member is expected"));
    }
    Ok(socket_of(path, is_alone))
}

/// A directory's socket for clients of a service, or else for nodes, as members of a cluster have it. If it has neither
/// yet, the directory of one of several is a member's.
fn socket_of(place: &Path, is_alone: bool) -> PathBuf {
    if !place.is_dir() {
        return place.to_owned();
    }
    let layout = StreamLayout::new(place);
    let (service, stream) = (layout.node_socket(), layout.socket());
    if !service.exists() && (stream.exists() || !is_alone) { stream } else { service }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let parsed =
            |address| parse(address).unwrap().iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(parsed("tcp://a:9200,b:9200"), ["tcp:a:9200", "tcp:b:9200"]);
        assert_eq!(parsed("tcp://[::1]:9200, tcp://b:1"), ["tcp:[::1]:9200", "tcp:b:1"]);
        assert_eq!(parsed("/tmp/none.socket,other.socket"), ["/tmp/none.socket", "other.socket"]);
        assert_eq!(parsed("one.socket,tcp://b:9200"), ["one.socket", "tcp:b:9200"]);
    }

    #[test]
    fn directory_is_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        let address = directory.path().to_str().unwrap().to_owned();
        let layout = StreamLayout::new(directory.path());
        assert_eq!(parse(&address).unwrap(), [layout.node_socket()], "a service may start later");
        let of_members = parse(&format!("{address},{address}")).unwrap();
        assert_eq!(of_members, [layout.socket(), layout.socket()], "a member may start later");
        std::fs::write(layout.socket(), "").unwrap();
        assert_eq!(parse(&address).unwrap(), [layout.socket()]);
        std::fs::write(layout.node_socket(), "").unwrap();
        assert_eq!(parse(&format!("{address}/,{address}")).unwrap(), [layout.node_socket(), layout.node_socket()]);
    }

    #[test]
    fn bad_addresses_are_refused() {
        for (address, part) in [
            ("", "an empty part"),
            ("Cargo.toml", "a file; the directory or the socket"),
            ("a,,b", "an empty part"),
            ("tcp://", "an empty part"),
            ("tls://a:9200", "not encrypted yet"),
            ("http://a:9200", "http:// is unknown"),
            ("tcp:a:9200", "write tcp://a:9200"),
            ("tcp://a", "HOST:PORT is expected"),
            ("tcp://a:0", "HOST:PORT is expected"),
            ("tcp://a:65536", "HOST:PORT is expected"),
            ("tcp://:9200", "HOST:PORT is expected"),
            ("tcp://a:9200,data/", "HOST:PORT is expected"),
        ] {
            let error = parse(address).unwrap_err();
            assert!(matches!(error, ClientError::Option { option: "address", .. }), "{address}: {error}");
            assert!(error.to_string().contains(part), "{address}: {error}");
        }
    }
}
