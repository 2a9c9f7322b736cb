//! Protocol between operators' commands and the supervisor, and its client side.
//!
//! | module | what lives there |
//! |---|---|
//! | `client` | [`ControlClient`]: connection of a command |
//! | `startup` | [`take_charge`]: puts a configuration in force and starts a supervisor; [`take_over`], [`connect_if_any`] |
//! | `shutdown` | [`end_all`]: shuts down all instances and the supervisor |
//! | `statistics` | [`StatisticsReader`]: resource usage and call statistics |
//! | `offline` | [`status_of_files`]: status without a supervisor |
//! | [`protocol`] | requests and answers |

mod client;
mod offline;
pub mod protocol;
mod shutdown;
mod startup;
mod statistics;

pub(crate) use client::UPGRADE_ADVICE;
pub use client::{ControlClient, SupervisionStatus};
pub use offline::status_of_files;
pub use shutdown::end_all;
pub use startup::{connect_if_any, is_any_role_running, take_charge, take_over};
pub use statistics::{InstanceStatistics, RouteStatistics, StatisticsReader, SupervisorStatistics};
