//! Protocol between operators' commands and the supervisor, and its client side.
//!
//! | module | what lives there |
//! |---|---|
//! | `client` | [`ControlClient`]: connection of a command |
//! | `starting` | [`take_charge`]: puts a configuration in force and starts a supervisor; [`take_over`], [`connect_if_any`] |
//! | `ending` | [`end_all`]: shuts down all instances and the supervisor |
//! | `figures` | [`FigureReader`]: resource usage and call statistics |
//! | `unwatched` | [`status_of_files`]: status without a supervisor |
//! | [`protocol`] | requests and answers |

mod client;
mod ending;
mod figures;
pub mod protocol;
mod starting;
mod unwatched;

pub(crate) use client::WHAT_TO_DO;
pub use client::{ControlClient, Status};
pub use ending::end_all;
pub use figures::{CopyFigures, FigureReader, Figures, RouteFigures};
pub use starting::{connect_if_any, is_any_role_running, take_charge, take_over};
pub use unwatched::status_of_files;
