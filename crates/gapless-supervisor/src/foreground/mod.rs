//! What a command needs that stays in the foreground for as long as a file is in force: as a service of systemd, or as process 1 of
//! a container. It supervises nothing; killed, it stops nothing.
//!
//! | module | what lives there |
//! |---|---|
//! | `service_manager` | [`ServiceManager`]: who started it is told how far everything is |
//! | `signals` | [`ForegroundSignals`]: what it is asked to do, and orphans that process 1 is given |

mod service_manager;
mod signals;

pub use service_manager::ServiceManager;
pub use signals::{Asked, ForegroundSignals};
