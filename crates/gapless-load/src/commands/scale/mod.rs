//! Many aggregates.
//!
//! | module | what lives there |
//! |---|---|
//! | [`bus_process`] | the process of the bus |
//! | [`spread`] | commands mostly for few aggregates |

pub mod bus_process;
pub mod spread;
