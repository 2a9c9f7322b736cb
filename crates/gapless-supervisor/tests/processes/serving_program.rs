use super::instance_program::is_over;
use gapless_rpc::{Domain, DomainOptions, ServedRoute};
use std::path::Path;
use std::time::Duration;

pub const SERVE: &str = "serve";
pub const SERVE_LATE: &str = "serve-late";
pub const SERVE_IN_50_MS: &str = "serve-in-50-ms";
/// Replies with the process id after the requested milliseconds; [`FOR_EVER`] gets no reply.
pub const ROUTE: &str = "answer";
pub const FOR_EVER: u64 = u64::MAX;
pub const WORKERS: usize = 2;

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
