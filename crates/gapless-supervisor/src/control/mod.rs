//! What a person's commands and a supervisor say to each other, and the side of the commands.
//!
//! | module | what lives there |
//! |---|---|
//! | `client` | [`ControlClient`]: one command's connection |
//! | `starting` | [`take_charge`]: a file is put in force, and supervised; [`take_over`], [`connect_if_any`] |
//! | `ending` | [`end_all`]: everything is ended, and the supervisor behind it |
//! | `figures` | [`FigureReader`]: how much copies do, from one look to the next |
//! | `unwatched` | [`status_of_files`]: what is known where no supervisor answers |
//! | [`protocol`] | what is said |

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
