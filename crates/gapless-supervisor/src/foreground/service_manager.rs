//! `ServiceManager`: client of `sd_notify`.

use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

const SEND_TIMEOUT: Duration = Duration::from_secs(1);
const STATUS_BYTES_MAX: usize = 1000;

/// Service manager that started this command; without one nothing is sent.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Watchdog>,
    status: String,
}

#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    next: Instant,
}

impl ServiceManager {
    /// Uses the manager that the environment names, if any.
    ///
    /// # Errors
    /// `NOTIFY_SOCKET` or `WATCHDOG_USEC` has an invalid value; the text says which are allowed.
    pub fn from_environment() -> Result<Self, String> {
        let variable = |name: &str| std::env::var_os(name);
        Self::of(variable("NOTIFY_SOCKET"), variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id())
    }

    fn of(
        socket: Option<OsString>,
        watchdog_us: Option<OsString>,
        watchdog_process: Option<OsString>,
        own_process: u32,
    ) -> Result<Self, String> {
        let Some(name) = socket else { return Ok(Self::default()) };
        let is_for_another = watchdog_process.is_some_and(|process| process != own_process.to_string().as_str());
        let interval = watchdog_us.filter(|_| !is_for_another).map(|text| interval(&text)).transpose()?;
        let address = address(&name)
            .map_err(|error| format!("NOTIFY_SOCKET is {name:?}: a path from / or @NAME is expected ({error})"))?;
        let failed = |error: io::Error| format!("a socket for NOTIFY_SOCKET: {error}");
        let socket = UnixDatagram::unbound().map_err(failed)?;
        socket.set_write_timeout(Some(SEND_TIMEOUT)).map_err(failed)?;
        let watchdog = interval.map(|interval| Watchdog { interval: interval / 2, next: Instant::now() });
        Ok(Self { socket: Some((socket, address)), watchdog, status: String::new() })
    }

    /// Reports readiness, also after [`reloading`](Self::reloading).
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Reports that the configuration is being reloaded; call [`ready`](Self::ready) after it.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
    }

    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Reports a status of one line, if it has changed.
    pub fn status(&mut self, status: &str) {
        let mut line: String = status.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        line.truncate(line.floor_char_boundary(STATUS_BYTES_MAX));
        if line != self.status {
            self.send(&format!("STATUS={line}"));
            self.status = line;
        }
    }

    /// Next time for [`watchdog`](Self::watchdog); `None` if the manager expects none.
    #[must_use]
    pub fn next_watchdog(&self) -> Option<Instant> {
        self.watchdog.as_ref().map(|watchdog| watchdog.next)
    }

    /// Sends a sign of life.
    pub fn watchdog(&mut self) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.next = Instant::now() + watchdog.interval;
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, message: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            // If the manager is gone, its successor starts this command again.
            tracing::warn!("telling the service manager {message:?}: {error}");
        }
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] if !name.is_empty() => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither")),
    }
}

fn interval(text: &OsStr) -> Result<Duration, String> {
    let us = text.to_str().and_then(|text| text.parse::<u64>().ok()).filter(|us| *us >= 1000);
    us.map(Duration::from_micros)
        .ok_or_else(|| format!("WATCHDOG_USEC is {text:?}: microseconds are expected, 1000 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let next = || socket.recv(&mut bytes).ok().map(|count| String::from_utf8_lossy(&bytes[..count]).into_owned());
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn paths_and_abstract_names_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let name = format!("gapless-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let at_path = (UnixDatagram::bind(&path).unwrap(), path.into_os_string());
        let at_name = (UnixDatagram::bind_addr(&abstract_name).unwrap(), format!("@{name}").into());
        for (socket, given) in [at_path, at_name] {
            let mut manager = ServiceManager::of(Some(given), Some("3000000".into()), Some("7".into()), 7).unwrap();
            manager.status("two\nlines");
            manager.status("two\nlines");
            manager.ready();
            manager.watchdog();
            let next = manager.next_watchdog().unwrap().saturating_duration_since(Instant::now());
            assert!(
                next > Duration::from_secs(1) && next <= Duration::from_millis(1500),
                "half of the interval: {next:?}"
            );
            manager.reloading();
            manager.stopping();
            let mut heard = heard(&socket);
            let reloading = heard.remove(3);
            assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
            assert_eq!(heard, ["STATUS=two lines", "READY=1", "WATCHDOG=1", "STOPPING=1"]);
        }
    }

    #[test]
    fn invalid_variables_are_named() {
        let of = |socket: Option<&str>, us: Option<&str>, process: Option<&str>| {
            ServiceManager::of(socket.map(Into::into), us.map(Into::into), process.map(Into::into), 7)
        };
        assert!(of(Some("/x"), Some("5000"), None).unwrap().next_watchdog().is_some());
        assert!(of(Some("/x"), Some("5000"), Some("8")).unwrap().next_watchdog().is_none());
        assert!(of(None, Some("x"), None).unwrap().next_watchdog().is_none(), "no socket");
        for (socket, us) in [("", "5000"), ("@", "5000"), ("a/b", "5000"), ("vsock:2:1", "5000")] {
            let error = of(Some(socket), Some(us), None).unwrap_err();
            assert!(error.contains("a path from / or @NAME is expected"), "{error}");
        }
        for us in ["", "0", "-1", "1.5", "soon"] {
            let error = of(Some("/x"), Some(us), None).unwrap_err();
            assert!(error.contains("WATCHDOG_USEC") && error.contains("microseconds are expected"), "{error}");
        }
        of(Some("/nowhere/at/all"), None, None).unwrap().ready();
    }
}
