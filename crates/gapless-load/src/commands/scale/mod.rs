//! Many aggregates.
//!
//! | module | what lives there |
//! |---|---|
//! | [`bus_process`] | the process that holds the bus |
//! | [`spread`] | commands for few aggregates and, some of them, for any |

pub mod bus_process;
pub mod spread;
