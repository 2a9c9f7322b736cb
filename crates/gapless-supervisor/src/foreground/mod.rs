//! A command that stays in the foreground while a configuration is in force. It supervises nothing; killing it stops
//! nothing.

mod service_manager;
mod signals;

pub use service_manager::ServiceManager;
pub use signals::{ForegroundSignals, SignalRequest};
