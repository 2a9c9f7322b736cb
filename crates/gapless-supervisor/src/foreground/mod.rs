//! Support for a command that stays in the foreground, as a service of systemd or as process 1 of a container. It stays
//! while a configuration is in force. It supervises nothing; killing it stops nothing.
//!
//! | module | what lives there |
//! |---|---|
//! | `service_manager` | [`ServiceManager`]: notifications to the service manager |
//! | `signals` | [`ForegroundSignals`]: requests by signals, and reaping of orphans as process 1 |

mod service_manager;
mod signals;

pub use service_manager::ServiceManager;
pub use signals::{ForegroundSignals, SignalRequest};
