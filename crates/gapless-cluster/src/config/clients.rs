//! Table `[clients]` of a member's file: the TCP port for clients of its service.

use gapless_config::{ConfigError, Table};
use gapless_stream::network::ClientPort;
use gapless_transport::credentials::Credentials;
use gapless_wire::soup::Field;

pub(super) fn read(mut table: Table<'_>) -> Result<Option<ClientPort>, ConfigError> {
    let (username, password, most) = (table.take("username"), table.take("password"), table.take("connections_max"));
    let Some(address) = table.take("address") else {
        if username.is_some() || password.is_some() || most.is_some() {
            return Err(table.missing("address", "an IP address with a port, such as \"192.0.2.7:9200\","));
        }
        table.end()?;
        return Ok(None);
    };
    let found = address.address()?;
    if found.ip().is_unspecified() || found.ip().is_multicast() || found.port() == 0 {
        let expected = "an address of this machine with a port is allowed, as clients on others reach it, such as \"192.0.2.7:9200\"";
        return Err(address.expected(expected));
    }
    let mut port = ClientPort::new(found);
    let sessions = &mut port.sessions;
    if let Some(most) = most {
        sessions.clients_max = most.whole(1..=4096)? as usize;
    }
    match (username, password) {
        (None, None) => {}
        (Some(username), Some(password)) => {
            let user = Credentials { username: username.read(Field::new)?, password: password.read(Field::new)? };
            if user.username.is_blank() {
                return Err(username.expected("1 to 6 printable ASCII characters are allowed"));
            }
            sessions.users.push(user);
        }
        (Some(_), None) => return Err(table.missing("password", "a text of up to 10 characters beside the username")),
        (None, Some(_)) => return Err(table.missing("username", "a text of up to 6 characters beside the password")),
    }
    table.end()?;
    Ok(Some(port))
}
