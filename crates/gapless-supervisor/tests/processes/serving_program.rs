//! Routes of the supervised program of the tests.

use super::instance_program::is_over;
use gapless_rpc::{Domain, DomainOptions, ServedRoute};
use std::path::Path;
use std::time::Duration;

/// Behaviour of `instance_program`: serves [`ROUTE`] at once.
pub const SERVE: &str = "serve";
/// Serves it once the file `serve` exists.
pub const SERVE_LATE: &str = "serve-late";
/// Serves it 50 ms after its start.
pub const SERVE_IN_50_MS: &str = "serve-in-50-ms";
/// Route whose request is a time in milliseconds, after which the process id is returned. [`FOR_EVER`] gets no reply.
pub const ROUTE: &str = "answer";
pub const FOR_EVER: u64 = u64::MAX;
pub const WORKERS: usize = 2;

/// Serves the route, if the behaviour asks for it.
pub fn served(folder: &Path, wish: &str) -> Option<ServedRoute> {
    match wish {
        SERVE => {}
        SERVE_LATE => {
            while !folder.join(SERVE).exists() && !is_over(folder) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        SERVE_IN_50_MS => std::thread::sleep(Duration::from_millis(50)),
        _ => return None,
    }
    let domain = Domain::open_from_environment("tests", DomainOptions::default()).unwrap();
    let served = domain.serve(ROUTE).workers(WORKERS).handle(|ms: u64, _context| {
        loop {
            std::thread::sleep(Duration::from_millis(ms.min(1000)));
            if ms != FOR_EVER {
                return Ok(std::process::id());
            }
        }
    });
    Some(served.unwrap())
}
